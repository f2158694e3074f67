// A search that a model guides: it begins with what is likely, then tries one variant after the other, each time that
// of which the model, fitted to all trials before, expects most improvement. Several at a time from one fit were worse
// on recorded spaces (docs/benchmarks/2026-11-27-one-trial-a-plan.md).
//
// Where code is compiled for its trials it plans eight at a time, and more after each trial while the device waits for
// code, so that each compiler has one and another is ready for it, up to sixteen codes, and nothing waits for the
// slowest: the most promising one, one of the best one's neighbours (trees smooth away what a single step changes; near
// the end of the limit, of the best few), what is fastest in draws from the model, and now and then anything. A trial
// of code that is there already takes no compiler and does not count (docs/benchmarks/2026-11-28-cold-search-costs.md).
#ifndef ATTUNE_SERVER_SEARCH_GUIDED_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_GUIDED_STRATEGY_H_

#include <cstdint>
#include <vector>

#include "server/search/exchange.h"
#include "server/search/learning_strategy.h"
#include "server/search/random_numbers.h"
#include "server/search/space_model.h"

namespace attune::search {

class GuidedStrategy final : public LearningStrategy {
 public:
  struct Options {
    uint64_t seed = 1;
    int64_t limit = 0;  // trials it can count on, at most; 0: all
    // It ends when it has been so sure for eight trials that nothing is much better than the best; 0: never.
    double enough = 0;
  };
  // `field` has points.
  GuidedStrategy(Field field, const Options& options);

  size_t Total() const override;

 private:
  bool PlansMore(const Situation& situation) const override;
  // New codes of trials planned and not told, while code is compiled: what more would be planned knowing less.
  size_t MostCodes() const;
  // Whether code was compiled for one of the last eight trials.
  static bool IsCompiling(const Situation& situation);
  Plan MakePlan(const Situation& situation) const override;

  const Field field_;
  const Options options_;
  const Exchange exchange_;
  const SpaceModel model_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_GUIDED_STRATEGY_H_
