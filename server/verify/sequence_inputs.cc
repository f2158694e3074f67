#include "server/verify/sequence_inputs.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace attune::verify {
namespace {

// The last sequence's tokens go to the one before it, where they fit. `falling` is SequenceLengths'.
std::vector<int64_t> WithoutTheLast(std::vector<int64_t> falling) {
  const size_t n = falling.size();
  if (n < 2 || falling[n - 1] + falling[n - 2] > falling.front()) return falling;
  falling[n - 2] += falling[n - 1];
  falling[n - 1] = 0;
  return falling;
}

std::vector<int64_t> Reversed(std::vector<int64_t> lengths) {
  std::reverse(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

Lengths LengthsFor(const Problem& problem, Distribution distribution) {
  const Lengths falling = SequenceLengths(problem);
  Lengths lengths = falling;
  const bool own_q = problem.varlen;
  const bool own_kv = problem.varlen || problem.page_size > 0;
  switch (distribution) {
    case Distribution::kNormal:
      break;
    case Distribution::kOffsetMean:
      if (own_kv) lengths.kv = Reversed(falling.kv);
      break;
    case Distribution::kLargeLogits:
      if (own_kv) lengths.kv = WithoutTheLast(falling.kv);
      break;
    case Distribution::kDominantKey:
      if (own_q) lengths.q = Reversed(WithoutTheLast(falling.q));
      break;
  }
  return lengths;
}

Paging ShufflePages(const Problem& problem, const std::vector<int64_t>& kv_lengths, uint64_t random) {
  const auto pages_for = [size = problem.page_size](int64_t length) { return (length + size - 1) / size; };
  Paging paging;
  paging.pages = 1;
  for (const int64_t length : kv_lengths) paging.pages += pages_for(length);
  std::vector<int32_t> order(paging.pages);
  std::iota(order.begin(), order.end(), 0);
  // Not std::shuffle, whose result is each library's own: a seed always means the same data.
  std::mt19937_64 generator(random);
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[generator() % (i + 1)]);

  const int64_t most = pages_for(problem.seq_kv);
  paging.table.assign(problem.batch * most, -1);
  auto next = order.begin();
  for (int64_t b = 0; b < problem.batch; ++b) {
    const int64_t pages = pages_for(kv_lengths[b]);
    std::copy_n(next, pages, paging.table.begin() + b * most);
    next += pages;
  }
  return paging;
}

}  // namespace attune::verify
