// Every candidate: first those that others found fastest, then the rest in the order given.
#ifndef ATTUNE_SERVER_SEARCH_EXHAUSTIVE_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_EXHAUSTIVE_STRATEGY_H_

#include <set>
#include <utility>
#include <vector>

#include "server/search/ordered_strategy.h"

namespace attune::search {

class ExhaustiveStrategy : public OrderedStrategy {
 public:
  explicit ExhaustiveStrategy(size_t candidates, std::vector<size_t> first = {})
      : candidates_(candidates), first_(std::move(first)) {}

  size_t Total() const override { return candidates_; }

 private:
  std::optional<size_t> Next() override {
    while (first_asked_ < first_.size()) {
      const size_t candidate = first_[first_asked_++];
      if (asked_.insert(candidate).second) return candidate;
    }
    while (next_ < candidates_ && asked_.contains(next_)) ++next_;
    if (next_ == candidates_) return std::nullopt;
    return next_++;
  }

  const size_t candidates_;
  const std::vector<size_t> first_;
  std::set<size_t> asked_;  // of first_
  size_t first_asked_ = 0;
  size_t next_ = 0;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_EXHAUSTIVE_STRATEGY_H_
