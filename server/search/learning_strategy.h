// A strategy that plans a few trials at a time, from everything it was told: the next batch, and codes that later ones
// may need. It plans anew once the batch has ended, or, if it is of the kind, while the device waits for code.
//
// Where no code is waited for, what it tries follows from what it is told alone.
#ifndef ATTUNE_SERVER_SEARCH_LEARNING_STRATEGY_H_
#define ATTUNE_SERVER_SEARCH_LEARNING_STRATEGY_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "server/search/strategy.h"

namespace attune::search {

// A candidate and how it has ended.
using Told = std::pair<size_t, Outcome>;

// SLOW is a time like any other. UNSTABLE, or OK without a time, is as good as failed.
Outcome OutcomeOf(const v1::Trial& trial);

class LearningStrategy : public Strategy {
 public:
  explicit LearningStrategy(const Field& field);

  std::optional<size_t> Speculate() final;
  std::vector<size_t> Drop() final { return std::exchange(dropped_, {}); }
  Choice Choose(const std::vector<size_t>& ready) final;
  void Tell(size_t candidate, const v1::Trial& trial) final;
  Thought Think() final;
  bool Done() const final { return done_; }
  size_t Total() const override { return states_.size(); }
  std::vector<size_t> Known() const final { return known_; }
  // "generation 3"
  std::string Stage() const final;
  // As of the last plan.
  std::optional<v1::SearchClaim> Claim() const final;

 protected:
  struct Plan {
    std::vector<size_t> batch;  // to be tried, in this order; none: the search is over
    std::vector<size_t> ahead;  // to be compiled after those, most wanted first
    // That nothing else is better than the best by more than kWithin (confidence.h); nothing while that is not known.
    std::optional<double> confidence = {};
    std::optional<size_t> sure_since = {};  // since how many were told it is sure enough to end; nothing: it is not
  };
  // What was told so far, in the order of telling, those known before first. LOST trials are not in it, but are not to
  // be planned again. `open`: whether a candidate was neither told nor lost.
  struct Situation {
    std::vector<Told> told;
    std::vector<bool> open;
    size_t known = 0;                       // the first of `told`
    size_t pending = 0;                     // planned before and not told yet; these are not open either
    size_t new_codes = 0;                   // codes of the pending ones that no trial was told of
    size_t round = 0;                       // plans made before
    std::optional<size_t> sure_since = {};  // of the plan before
    // How many were told after the last one whose code was compiled for it; nothing: there was none.
    std::optional<size_t> since_compiled = {};
  };

 private:
  // Whether it plans more before the batch has ended: asked where a card waits for code and something was told since,
  // and where fewer are to come than there are cards. Those planned stay planned; the new plan's come after them.
  virtual bool PlansMore(const Situation& /*situation*/) const { return false; }
  // What a batch is called.
  virtual std::string BatchName() const { return "batch"; }

  enum class State : char { kFree, kSpeculated, kChosen, kTold };

  // Without any lock; what it reads beside the situation does not change.
  virtual Plan MakePlan(const Situation& situation) const = 0;

  void Adopt(Plan plan);
  size_t NewCodes() const;

  const size_t cards_;
  std::vector<size_t> codes_;  // of each candidate
  std::vector<bool> told_of_;  // each code: whether it, or a candidate that has it, was told or known
  std::vector<State> states_;
  std::vector<size_t> known_;
  Situation situation_;
  Plan plan_;
  std::optional<double> confidence_;  // of the last plan
  size_t tried_when_planned_ = 0;
  size_t untold_ = 0;   // of the batch
  bool news_ = false;   // told since the last plan
  bool waits_ = false;  // a card, for code
  bool ends_ = false;   // the last plan had nothing
  std::vector<size_t> dropped_;
  bool thinking_ = false;
  bool done_ = false;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_LEARNING_STRATEGY_H_
