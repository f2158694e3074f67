// Every candidate, in the order given.
#ifndef ATTUNE_SERVER_SEARCH_EXHAUSTIVE_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_EXHAUSTIVE_STRATEGY_H_

#include "server/search/strategy.h"

namespace attune::search {

class ExhaustiveStrategy : public Strategy {
 public:
  explicit ExhaustiveStrategy(size_t candidates) : candidates_(candidates) {}

  std::optional<size_t> Ask() override {
    if (next_ == candidates_) return std::nullopt;
    return next_++;
  }
  void Tell(size_t candidate, const v1::Trial& trial) override {}
  size_t Total() const override { return candidates_; }

 private:
  const size_t candidates_;
  size_t next_ = 0;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_EXHAUSTIVE_STRATEGY_H_
