#include "client/replay/likeness.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/catalog/answers/problem_distance.h"

namespace attune::replay {

double Unlikeness(const Problem& a, const Problem& b) {
  using catalog::Octaves;
  double sum = Octaves(a.batch * a.heads_q, b.batch * b.heads_q) +
               Octaves(a.heads_q * b.heads_kv, b.heads_q * a.heads_kv) + Octaves(a.seq_q, b.seq_q) +
               Octaves(a.seq_kv, b.seq_kv) + 2 * Octaves(a.head_dim, b.head_dim);
  if (a.mask != b.mask) sum += 1;
  if (a.kv_dtype != b.kv_dtype) sum += 1;
  if ((a.softcap > 0) != (b.softcap > 0)) sum += 1;
  if (a.page_size != b.page_size) sum += 1;
  if (a.dtype != b.dtype) sum += 0.5;
  return sum;
}

std::vector<const TunedProblem*> MostAlikeFirst(std::vector<const TunedProblem*> tuned, const Problem& problem) {
  std::vector<std::pair<std::pair<double, std::string>, const TunedProblem*>> ranked;
  for (const TunedProblem* one : tuned) {
    ranked.push_back({{Unlikeness(one->choices.problem, problem), ToText(one->choices.problem)}, one});
  }
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < tuned.size(); ++i) tuned[i] = ranked[i].second;
  return tuned;
}

}  // namespace attune::replay
