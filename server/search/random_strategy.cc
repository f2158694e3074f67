#include "server/search/random_strategy.h"

#include <utility>

namespace attune::search {

RandomStrategy::RandomStrategy(size_t candidates, std::vector<size_t> first, const std::vector<size_t>& families,
                               uint64_t seed)
    : random_(seed), first_(std::move(first)), candidates_(candidates), families_(1) {
  for (size_t candidate = 0; candidate < candidates; ++candidate) {
    const size_t family = families.empty() ? 0 : families[candidate];
    if (family >= families_.size()) families_.resize(family + 1);
    families_[family].order.push_back(candidate);
  }
}

std::optional<size_t> RandomStrategy::Next() {
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
  if (drawn_ == candidates_) return std::nullopt;
  while (families_[turn_].drawn == families_[turn_].order.size()) turn_ = (turn_ + 1) % families_.size();
  auto& [order, drawn] = families_[turn_];
  turn_ = (turn_ + 1) % families_.size();
  // One step of Fisher and Yates' shuffle. Taking the remainder favours early candidates by less than n / 2^64.
  const size_t left = order.size() - drawn;
  std::swap(order[drawn], order[drawn + random_() % left]);
  ++drawn_;
  return order[drawn++];
}

}  // namespace attune::search
