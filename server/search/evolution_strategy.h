// (mu + lambda) evolution: the best variants so far are changed in one parameter or mixed, and of many such children
// those are tried that a model expects most of (the recipe of Ansor, Zheng et al., OSDI 2020).
#ifndef ATTUNE_SERVER_SEARCH_EVOLUTION_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_EVOLUTION_STRATEGY_H_

#include <cstdint>
#include <set>
#include <vector>

#include "server/search/exchange.h"
#include "server/search/learning_strategy.h"
#include "server/search/random_numbers.h"
#include "server/search/space_model.h"

namespace attune::search {

class EvolutionStrategy final : public LearningStrategy {
 public:
  // `field` has points.
  EvolutionStrategy(Field field, uint64_t seed);

 private:
  Plan MakePlan(const Situation& situation) const override;
  std::string BatchName() const override { return "generation"; }
  // Candidates that are open, each once: children of `parents`, and where there are too few of those any.
  std::vector<size_t> Children(const std::vector<size_t>& parents, const std::vector<bool>& open,
                               RandomNumbers& random) const;
  std::optional<size_t> Child(const std::vector<size_t>& parents, RandomNumbers& random) const;

  const Field field_;
  const uint64_t seed_;
  const Exchange exchange_;
  const SpaceModel model_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_EVOLUTION_STRATEGY_H_
