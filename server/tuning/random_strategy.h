// Candidates drawn without replacement; the seed decides the order, so that a resumed job draws the same ones.
#ifndef ATTUNE_SERVER_TUNING_RANDOM_STRATEGY_H_
#define ATTUNE_SERVER_TUNING_RANDOM_STRATEGY_H_

#include <random>
#include <vector>

#include "server/tuning/strategy.h"

namespace attune::tuning {

class RandomStrategy : public Strategy {
 public:
  RandomStrategy(size_t candidates, uint64_t seed);

  std::optional<size_t> Ask() override;
  void Tell(size_t candidate, const v1::Trial& trial) override {}
  size_t Total() const override { return order_.size(); }

 private:
  std::mt19937_64 random_;
  std::vector<size_t> order_;  // the first next_ are drawn
  size_t next_ = 0;
};

}  // namespace attune::tuning

#endif  // ATTUNE_SERVER_TUNING_RANDOM_STRATEGY_H_
