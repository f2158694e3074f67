#include "server/verify/sequence_inputs.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace attune::verify {
namespace {

// A common tile's rows or keys.
constexpr int64_t kTile = 128;

// The last sequence's tokens go to the one before it, where they fit. `falling` is SequenceLengths'.
std::vector<int64_t> WithoutTheLast(std::vector<int64_t> falling) {
  const size_t n = falling.size();
  if (n < 2 || falling[n - 1] + falling[n - 2] > falling.front()) return falling;
  falling[n - 2] += falling[n - 1];
  falling[n - 1] = 0;
  return falling;
}

// Moves 1 to 15 tokens between neighbours, as far as both stay within 1 and `longest`: few lengths are multiples of
// anything.
std::vector<int64_t> Shifted(std::vector<int64_t> lengths, int64_t longest) {
  for (size_t i = 0; i + 1 < lengths.size(); i += 2) {
    const bool forward = lengths[i + 1] < longest && lengths[i] > 1;
    int64_t& from = lengths[forward ? i : i + 1];
    int64_t& to = lengths[forward ? i + 1 : i];
    const int64_t tokens = std::min({static_cast<int64_t>(1 + (i / 2 * 4 + 6) % 15), from - 1, longest - to});
    if (from <= 1 || to <= 1 || tokens <= 0) continue;
    from -= tokens;
    to += tokens;
  }
  return lengths;
}

// A sequence of one token, and one that ends with the first token of a tile or page; what they lose goes to the others
// as far as they have room. `falling` is SequenceLengths'.
std::vector<int64_t> WithOneToken(std::vector<int64_t> falling, int64_t tile) {
  const size_t n = falling.size();
  const int64_t longest = falling.front();
  const auto shorten = [&](size_t i, int64_t length) {
    int64_t room = 0;
    for (size_t j = 1; j < i; ++j) room += longest - falling[j];
    int64_t rest = std::min(falling[i] - length, room);
    falling[i] -= rest;
    for (size_t j = 1; j < i; ++j) {
      const int64_t taken = std::min(rest, longest - falling[j]);
      falling[j] += taken;
      rest -= taken;
    }
  };
  if (n >= 2) shorten(n - 1, 1);
  if (n >= 4) shorten(n - 2, (falling[n - 2] - 1) / tile * tile + 1);
  return falling;
}

// Pages are taken one by one, so that their sequences' lengths need no total: all are shorter than `falling` by 1 to 15
// tokens, the last has one, the one before it the first token of its last page, the one before that none.
std::vector<int64_t> Ragged(std::vector<int64_t> falling, int64_t page_size) {
  const size_t n = falling.size();
  for (size_t i = 0; i < n; ++i) {
    falling[i] = std::max<int64_t>(1, falling[i] - static_cast<int64_t>(1 + (i * 4 + 6) % 15));
  }
  if (n >= 2) falling[n - 1] = 1;
  if (n >= 3) falling[n - 2] = (falling[n - 2] - 1) / page_size * page_size + 1;
  if (n >= 4) falling[n - 3] = 0;
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
    case Distribution::kCounting:
      if (own_q) lengths.q = WithOneToken(falling.q, kTile);
      if (own_kv)
        lengths.kv =
            problem.page_size > 0 ? Ragged(falling.kv, problem.page_size) : Reversed(WithOneToken(falling.kv, kTile));
      break;
  }
  if (distribution != Distribution::kNormal && own_q) lengths.q = Shifted(std::move(lengths.q), falling.q.front());
  const bool ragged = distribution == Distribution::kCounting && problem.page_size > 0;
  if (distribution != Distribution::kNormal && own_kv && !ragged) {
    lengths.kv = Shifted(std::move(lengths.kv), falling.kv.front());
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
