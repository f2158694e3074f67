#include "server/search/strategy.h"

#include <utility>

#include "server/base/proto_time.h"
#include "server/search/budget.h"
#include "server/search/exhaustive_strategy.h"
#include "server/search/random_strategy.h"

namespace attune::search {

std::unique_ptr<Strategy> MakeStrategy(const v1::Strategy& description, Field field, uint64_t default_seed,
                                       Clock clock) {
  const Likely& likely = field.likely;
  std::vector<size_t> first;
  if (likely.incumbent.has_value()) first.push_back(*likely.incumbent);
  first.insert(first.end(), likely.priors.begin(), likely.priors.end());
  std::unique_ptr<Strategy> strategy;
  if (description.kind() == v1::Strategy::KIND_RANDOM) {
    const uint64_t seed = description.seed() != 0 ? description.seed() : default_seed;
    first.insert(first.end(), likely.guesses.begin(), likely.guesses.end());
    strategy = std::make_unique<RandomStrategy>(field.candidates, first, likely.families, seed);
  } else {
    strategy = std::make_unique<ExhaustiveStrategy>(field.candidates, first);
  }
  Budget budget;
  budget.max_trials = description.max_trials();
  if (description.has_max_time()) budget.max_time = DurationOf(description.max_time());
  return std::make_unique<BudgetedStrategy>(std::move(strategy), budget, std::move(clock));
}

}  // namespace attune::search
