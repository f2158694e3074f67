#include "server/search/random_strategy.h"

#include <numeric>
#include <utility>

namespace attune::search {

RandomStrategy::RandomStrategy(size_t candidates, std::vector<size_t> first, uint64_t seed)
    : random_(seed), first_(std::move(first)), order_(candidates) {
  std::iota(order_.begin(), order_.end(), size_t{0});
}

std::optional<size_t> RandomStrategy::Ask() {
  while (first_asked_ < first_.size()) {
    const size_t candidate = first_[first_asked_++];
    if (asked_.insert(candidate).second) return candidate;
  }
  while (const std::optional<size_t> candidate = Draw()) {
    if (!asked_.contains(*candidate)) return candidate;
  }
  return std::nullopt;
}

std::optional<size_t> RandomStrategy::Draw() {
  if (drawn_ == order_.size()) return std::nullopt;
  // One step of Fisher and Yates' shuffle. Taking the remainder favours early candidates by less than n / 2^64.
  const size_t left = order_.size() - drawn_;
  std::swap(order_[drawn_], order_[drawn_ + random_() % left]);
  return order_[drawn_++];
}

}  // namespace attune::search
