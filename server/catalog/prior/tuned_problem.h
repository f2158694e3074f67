// What is learned of a problem that was tuned, for others.
#ifndef ATTUNE_SERVER_CATALOG_TUNED_PROBLEM_H_
#define ATTUNE_SERVER_CATALOG_TUNED_PROBLEM_H_

#include <cstddef>
#include <vector>

#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::catalog {

// Some of its right and timed variants.
struct TunedProblem {
  Problem problem;
  std::vector<space::Variant> variants;  // fastest first
  std::vector<double> us;                // of each
  double level_us = 0;                   // LevelOf all
};

// Of so many variants of a problem others learn, fastest first (server/base/thinned.h).
inline constexpr size_t kMostLearned = 120;

// What the fastest tenth of a problem's variants take, at the median; `us`: of each, fastest first, not none. Times are
// learned as shares of it: a single fastest one may be far ahead.
double LevelOf(const std::vector<double>& us);

// `variants` and `us`: all of the problem's, fastest first.
TunedProblem LearnedOf(const Problem& problem, const std::vector<space::Variant>& variants,
                       const std::vector<double>& us);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_TUNED_PROBLEM_H_
