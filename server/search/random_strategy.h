// First what is guessed to be good, then candidates drawn without replacement; the seed decides the order, so that a
// resumed job draws the same ones.
#ifndef ATTUNE_SERVER_SEARCH_RANDOM_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_RANDOM_STRATEGY_H_

#include <random>
#include <vector>

#include "server/search/strategy.h"

namespace attune::search {

class RandomStrategy : public Strategy {
 public:
  // `first` are different candidates.
  RandomStrategy(size_t candidates, const std::vector<size_t>& first, uint64_t seed);

  std::optional<size_t> Ask() override;
  void Tell(size_t candidate, const v1::Trial& trial) override {}
  size_t Total() const override { return order_.size(); }

 private:
  std::mt19937_64 random_;
  std::vector<size_t> order_;  // the first next_ have been asked for
  size_t given_;               // so many of them are not drawn
  size_t next_ = 0;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_RANDOM_STRATEGY_H_
