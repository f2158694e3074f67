// Host loops over tensors of tens of millions of elements, spread over the cores.
#ifndef ATTUNE_SERVER_VERIFY_PARALLEL_H_
#define ATTUNE_SERVER_VERIFY_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/types/span.h"

namespace attune::verify {

// Chunks that ParallelChunks makes of `n` elements, none smaller than `grain` but the last.
inline int64_t ChunkCount(int64_t n, int64_t grain) {
  const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
  return std::clamp<int64_t>(n / grain, 1, cores);
}

// Calls body(chunk, begin, end) once a chunk, each on a thread of its own; returns when all have.
template <typename Body>
void ParallelChunks(int64_t n, int64_t grain, Body&& body) {
  const int64_t chunks = ChunkCount(n, grain);
  std::vector<std::thread> threads;
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    threads.emplace_back([&body, n, chunk, chunks] { body(chunk, n * chunk / chunks, n * (chunk + 1) / chunks); });
  }
  body(int64_t{0}, int64_t{0}, n / chunks);
  for (std::thread& thread : threads) thread.join();
}

// Whether they are the same bytes.
inline bool SameBytes(absl::Span<const std::byte> a, absl::Span<const std::byte> b) {
  constexpr int64_t kGrain = 1 << 20;
  if (a.size() != b.size()) return false;
  std::atomic<bool> same = true;
  ParallelChunks(static_cast<int64_t>(a.size()), kGrain, [&](int64_t, int64_t begin, int64_t end) {
    if (begin < end && std::memcmp(a.data() + begin, b.data() + begin, end - begin) != 0) same = false;
  });
  return same;
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_PARALLEL_H_
