#include "server/catalog/prior/tuned_problem.h"

#include <algorithm>

#include "server/base/thinned.h"

namespace attune::catalog {

double LevelOf(const std::vector<double>& us) {
  const size_t tenth = std::min(us.size(), std::max<size_t>(5, us.size() / 10));
  return us[tenth / 2];
}

TunedProblem LearnedOf(const Problem& problem, const std::vector<space::Variant>& variants,
                       const std::vector<double>& us) {
  TunedProblem learned;
  learned.problem = problem;
  for (size_t i : attune::Thinned(variants.size(), kMostLearned)) {
    learned.variants.push_back(variants[i]);
    learned.us.push_back(us[i]);
  }
  if (!us.empty()) learned.level_us = LevelOf(us);
  return learned;
}

}  // namespace attune::catalog
