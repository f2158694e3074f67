// Ends any strategy after so many trials or so much time.
#ifndef ATTUNE_SERVER_SEARCH_BUDGET_H_
#define ATTUNE_SERVER_SEARCH_BUDGET_H_

#include <memory>
#include <set>

#include "absl/time/time.h"
#include "server/search/strategy.h"

namespace attune::search {

struct Budget {
  int64_t max_trials = 0;  // 0: no limit. Those are counted that are chosen, or told unasked
  int64_t spent = 0;       // of max_trials, before this began
  absl::Duration max_time = absl::InfiniteDuration();  // from the first choice
};

class BudgetedStrategy : public Strategy {
 public:
  BudgetedStrategy(std::unique_ptr<Strategy> strategy, Budget budget, Clock clock);

  std::optional<size_t> Speculate() override;
  std::vector<size_t> Drop() override;
  Choice Choose(const std::vector<size_t>& ready) override;
  void Tell(size_t candidate, const v1::Trial& trial) override;
  Thought Think() override;
  bool Done() const override;
  size_t Total() const override;
  std::vector<size_t> Known() const override { return strategy_->Known(); }
  absl::Duration TimeLeft() const override;
  std::string Stage() const override { return strategy_->Stage(); }
  std::optional<v1::SearchClaim> Claim() const override { return strategy_->Claim(); }

 private:
  bool IsSpent() const;
  bool IsTimeOver() const;

  const std::unique_ptr<Strategy> strategy_;
  const Budget budget_;
  const Clock clock_;
  std::set<size_t> open_;  // speculated about, not dropped, chosen or told
  int64_t taken_;          // chosen, or told unasked
  std::optional<absl::Duration> start_;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_BUDGET_H_
