// Ends any strategy after so many trials or so much time.
#ifndef ATTUNE_SERVER_SEARCH_BUDGET_H_
#define ATTUNE_SERVER_SEARCH_BUDGET_H_

#include <memory>

#include "absl/time/time.h"
#include "server/search/strategy.h"

namespace attune::search {

struct Budget {
  int64_t max_trials = 0;                              // 0: no limit
  absl::Duration max_time = absl::InfiniteDuration();  // from the first Ask
};

class BudgetedStrategy : public Strategy {
 public:
  BudgetedStrategy(std::unique_ptr<Strategy> strategy, Budget budget, Clock clock);

  std::optional<size_t> Ask() override;
  void Tell(size_t candidate, const v1::Trial& trial) override { strategy_->Tell(candidate, trial); }
  size_t Total() const override;

 private:
  const std::unique_ptr<Strategy> strategy_;
  const Budget budget_;
  const Clock clock_;
  int64_t asked_ = 0;
  absl::Duration start_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_BUDGET_H_
