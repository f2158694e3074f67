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
  std::optional<size_t> next = strategy_->Ask();
  while (next.has_value() && budget_.left_out.contains(*next)) next = strategy_->Ask();
  return next;
}

size_t BudgetedStrategy::Total() const {
  const size_t left = strategy_->Total() - std::min(strategy_->Total(), budget_.left_out.size());
  if (budget_.max_trials == 0) return left;
  return std::min(left, static_cast<size_t>(budget_.max_trials));
}

}  // namespace attune::search
