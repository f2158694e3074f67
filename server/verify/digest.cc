#include "server/verify/digest.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "server/verify/normal_deviates.h"
#include "server/verify/parallel.h"

namespace attune::verify {
namespace {

constexpr int64_t kWordsOfAChunk = 1 << 16;

uint64_t Sum(absl::Span<const std::byte> bytes, int64_t begin, int64_t end, uint64_t key) {
  uint64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    const size_t at = static_cast<size_t>(i) * sizeof(uint64_t);
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    sum += Mix(word ^ Mix(key + static_cast<uint64_t>(i) * kCounterStep));
  }
  return sum;
}

}  // namespace

uint64_t DigestOf(absl::Span<const std::byte> bytes, uint64_t key) {
  const auto words = static_cast<int64_t>((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  std::vector<uint64_t> sums(ChunkCount(words, kWordsOfAChunk));
  ParallelChunks(words, kWordsOfAChunk, [&](int64_t chunk, int64_t begin, int64_t end) {
    sums[static_cast<size_t>(chunk)] = Sum(bytes, begin, end, key);
  });
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

uint64_t DigestOf(std::byte value, size_t bytes, uint64_t key) {
  return DigestOf(std::vector<std::byte>(bytes, value), key);
}

}  // namespace attune::verify
