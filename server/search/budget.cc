#include "server/search/budget.h"

#include <algorithm>
#include <utility>

namespace attune::search {

BudgetedStrategy::BudgetedStrategy(std::unique_ptr<Strategy> strategy, Budget budget, Clock clock)
    : strategy_(std::move(strategy)), budget_(budget), clock_(std::move(clock)) {}

std::optional<size_t> BudgetedStrategy::Ask() {
  if (budget_.max_trials > 0 && asked_ == budget_.max_trials) return std::nullopt;
  const absl::Duration now = clock_();
  if (asked_ == 0) start_ = now;
  if (now - start_ >= budget_.max_time) return std::nullopt;
  ++asked_;
  return strategy_->Ask();
}

size_t BudgetedStrategy::Total() const {
  if (budget_.max_trials == 0) return strategy_->Total();
  return std::min(strategy_->Total(), static_cast<size_t>(budget_.max_trials));
}

}  // namespace attune::search
