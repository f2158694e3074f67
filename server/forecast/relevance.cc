#include "server/forecast/relevance.h"

#include <algorithm>
#include <cstdint>

#include "server/catalog/answers/problem_distance.h"

namespace attune::forecast {
namespace {

using catalog::Octaves;

constexpr double kFarthestLike = 6;  // octaves

int64_t SeenKeys(const Problem& problem) {
  if (problem.mask != v1::MASK_WINDOW) return problem.seq_kv;
  return std::min(problem.seq_kv, problem.window + problem.seq_q - 1);
}

// A single query sees all keys that there are, or a window of them.
bool IsUneven(const Problem& problem) { return problem.mask != v1::MASK_NONE && problem.seq_q > 1; }

}  // namespace

bool IsLike(const Problem& a, const Problem& b) {
  if (a.head_dim != b.head_dim || HasScales(a) != HasScales(b) || IsUneven(a) != IsUneven(b)) return false;
  return Octaves(a.batch * a.heads_q, b.batch * b.heads_q) + Octaves(a.heads_q * b.heads_kv, b.heads_q * a.heads_kv) +
             Octaves(a.seq_q, b.seq_q) + Octaves(SeenKeys(a), SeenKeys(b)) <=
         kFarthestLike;
}

}  // namespace attune::forecast
