#include "server/search/random_strategy.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace attune::search {

RandomStrategy::RandomStrategy(size_t candidates, const std::vector<size_t>& first, uint64_t seed)
    : random_(seed), order_(candidates), given_(first.size()) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  for (size_t i = 0; i < first.size(); ++i)
    std::iter_swap(order_.begin() + i, std::find(order_.begin(), order_.end(), first[i]));
}

std::optional<size_t> RandomStrategy::Ask() {
  if (next_ == order_.size()) return std::nullopt;
  if (next_ < given_) return order_[next_++];
  // One step of Fisher and Yates' shuffle. Taking the remainder favours early candidates by less than n / 2^64.
  const size_t left = order_.size() - next_;
  std::swap(order_[next_], order_[next_ + random_() % left]);
  return order_[next_++];
}

}  // namespace attune::search
