// How sure a search may be that nothing it has not tried is much better than the best it has.
#ifndef ATTUNE_SERVER_SEARCH_CONFIDENCE_H_
#define ATTUNE_SERVER_SEARCH_CONFIDENCE_H_

#include <vector>

#include "server/search/space_model.h"

namespace attune::search {

inline constexpr double kWithin = 0.02;  // of the best: what statements are about

// The probability that none of those that are untold takes less than best_us / (1 + kWithin), from what is expected of
// each. One whose trial was lost is untold: it may be the best. Expectations are taken as independent and wider than
// the trees are apart, after few trials much wider, by numbers chosen on recordings in tests/replay: of 96 searches
// that ended 95 % sure 93 were right (docs/benchmarks/2026-11-27-one-trial-a-plan.md).
double ConfidenceThatBest(double best_us, const std::vector<bool>& untold, const std::vector<Expectation>& expected);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_CONFIDENCE_H_
