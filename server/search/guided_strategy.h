// A search that a model guides: it begins with what is likely, then tries what the model expects most improvement of,
// one of the best one's neighbours (trees smooth away what a single step changes), what is fastest in draws from the
// model, and now and then anything (so that nothing is never looked at). Near the end of its limit it polishes: the
// neighbours of the best few.
//
// While the device waits for code it plans more after each trial, so that no batch waits for its slowest code: mostly
// one, that of which most improvement is expected among those that are not on the way.
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
    // It ends when it is so sure, twice in a row, that nothing is much better than the best; 0: never.
    double enough = 0;
  };
  // `field` has points.
  GuidedStrategy(Field field, const Options& options);

  size_t Total() const override;

 private:
  size_t MostPending() const override;
  Plan MakePlan(const Situation& situation) const override;

  const Field field_;
  const Options options_;
  const Exchange exchange_;
  const SpaceModel model_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_GUIDED_STRATEGY_H_
