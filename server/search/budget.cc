#include "server/search/budget.h"

#include <algorithm>
#include <utility>

namespace attune::search {

BudgetedStrategy::BudgetedStrategy(std::unique_ptr<Strategy> strategy, Budget budget, Clock clock)
    : strategy_(std::move(strategy)), budget_(budget), clock_(std::move(clock)), taken_(budget.spent) {}

bool BudgetedStrategy::IsSpent() const { return budget_.max_trials > 0 && taken_ >= budget_.max_trials; }

bool BudgetedStrategy::IsTimeOver() const { return start_.has_value() && TimeLeft() <= absl::ZeroDuration(); }

absl::Duration BudgetedStrategy::TimeLeft() const {
  return start_.has_value() ? budget_.max_time - (clock_() - *start_) : budget_.max_time;
}

std::optional<size_t> BudgetedStrategy::Speculate() {
  if (IsTimeOver()) return std::nullopt;
  const int64_t wanted = taken_ + static_cast<int64_t>(open_.size());
  if (budget_.max_trials > 0 && wanted >= budget_.max_trials) return std::nullopt;
  const std::optional<size_t> next = strategy_->Speculate();
  if (next.has_value()) open_.insert(*next);
  return next;
}

std::vector<size_t> BudgetedStrategy::Drop() {
  std::vector<size_t> dropped = strategy_->Drop();
  for (size_t candidate : dropped) open_.erase(candidate);
  return dropped;
}

Choice BudgetedStrategy::Choose(const std::vector<size_t>& ready) {
  if (IsSpent() || IsTimeOver()) return Choice::Done();
  const Choice choice = strategy_->Choose(ready);
  if (choice.what != Choice::What::kTry) return choice;
  if (!start_.has_value()) start_ = clock_();
  open_.erase(choice.candidate);
  ++taken_;
  return choice;
}

void BudgetedStrategy::Tell(size_t candidate, const v1::Trial& trial) {
  if (open_.erase(candidate) == 1) ++taken_;
  strategy_->Tell(candidate, trial);
}

// Also at the end: what it claims of its best may then be from all that was tried.
Strategy::Thought BudgetedStrategy::Think() { return strategy_->Think(); }

bool BudgetedStrategy::Done() const { return strategy_->Done() || IsSpent() || IsTimeOver(); }

size_t BudgetedStrategy::Total() const {
  if (budget_.max_trials == 0) return strategy_->Total();
  const size_t known = strategy_->Known().size();
  const int64_t left = std::max<int64_t>(budget_.max_trials - budget_.spent, 0);
  return known + std::min(strategy_->Total() - known, static_cast<size_t>(left));
}

}  // namespace attune::search
