#include "server/tuning/random_strategy.h"

#include <numeric>
#include <utility>

namespace attune::tuning {

RandomStrategy::RandomStrategy(size_t candidates, uint64_t seed) : random_(seed), order_(candidates) {
  std::iota(order_.begin(), order_.end(), size_t{0});
}

std::optional<size_t> RandomStrategy::Ask() {
  if (next_ == order_.size()) return std::nullopt;
  // One step of Fisher and Yates' shuffle. Taking the remainder favours early candidates by less than n / 2^64.
  const size_t left = order_.size() - next_;
  std::swap(order_[next_], order_[next_ + random_() % left]);
  return order_[next_++];
}

}  // namespace attune::tuning
