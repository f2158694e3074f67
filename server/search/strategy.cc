#include "server/search/strategy.h"

#include <algorithm>
#include <utility>

#include "server/base/proto_time.h"
#include "server/search/budget.h"
#include "server/search/evolution_strategy.h"
#include "server/search/exhaustive_strategy.h"
#include "server/search/guided_strategy.h"
#include "server/search/random_strategy.h"

namespace attune::search {
namespace {

int64_t AtLeast(int64_t least, double share, size_t candidates) {
  return std::max(least, static_cast<int64_t>(share * static_cast<double>(candidates)));
}

// Trials; 0: no limit.
int64_t LimitOf(v1::Strategy::Effort effort, size_t candidates) {
  switch (effort) {
    case v1::Strategy::EFFORT_QUICK:
      return 24;
    case v1::Strategy::EFFORT_FULL:
      return AtLeast(96, 0.25, candidates);
    case v1::Strategy::EFFORT_EXHAUSTIVE:
      return 0;
    default:
      return AtLeast(96, 0.05, candidates);
  }
}

int64_t Least(int64_t limit, int64_t max_trials) {
  if (limit == 0 || max_trials == 0) return std::max(limit, max_trials);
  return std::min(limit, max_trials);
}

}  // namespace

bool Learns(v1::Strategy::Kind kind) {
  return kind == v1::Strategy::KIND_GUIDED || kind == v1::Strategy::KIND_EVOLUTION;
}

int64_t TrialLimit(const v1::Strategy& description, size_t candidates) {
  return Least(LimitOf(description.effort(), candidates), description.max_trials());
}

double EnoughOf(v1::Strategy::Effort effort) {
  switch (effort) {
    case v1::Strategy::EFFORT_QUICK:
    case v1::Strategy::EFFORT_EXHAUSTIVE:
      return 0;
    case v1::Strategy::EFFORT_FULL:
      return 0.995;
    default:
      return 0.95;
  }
}

std::unique_ptr<Strategy> MakeStrategy(const v1::Strategy& description, Field field, uint64_t default_seed,
                                       Clock clock) {
  const uint64_t seed = description.seed() != 0 ? description.seed() : default_seed;
  Budget budget;
  budget.max_trials = description.max_trials();
  if (description.has_max_time()) budget.max_time = DurationOf(description.max_time());
  std::vector<size_t> first;
  if (field.likely.incumbent.has_value()) first.push_back(*field.likely.incumbent);
  first.insert(first.end(), field.likely.priors.begin(), field.likely.priors.end());
  std::unique_ptr<Strategy> strategy;
  if (Learns(description.kind())) {
    budget.spent = field.spent;
    budget.max_trials = TrialLimit(description, field.candidates);
    if (description.kind() == v1::Strategy::KIND_GUIDED) {
      strategy = std::make_unique<GuidedStrategy>(
          std::move(field), GuidedStrategy::Options{seed, budget.max_trials, EnoughOf(description.effort())});
    } else {
      strategy = std::make_unique<EvolutionStrategy>(std::move(field), seed);
    }
  } else if (description.kind() == v1::Strategy::KIND_RANDOM) {
    first.insert(first.end(), field.likely.guesses.begin(), field.likely.guesses.end());
    strategy = std::make_unique<RandomStrategy>(field.candidates, first, field.likely.families, seed);
  } else {
    strategy = std::make_unique<ExhaustiveStrategy>(field.candidates, first);
  }
  return std::make_unique<BudgetedStrategy>(std::move(strategy), budget, std::move(clock));
}

}  // namespace attune::search
