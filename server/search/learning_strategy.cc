#include "server/search/learning_strategy.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/search/confidence.h"

namespace attune::search {

Outcome OutcomeOf(const v1::Trial& trial) {
  const bool right = trial.verdict() == v1::VERDICT_OK || trial.verdict() == v1::VERDICT_SLOW;
  const bool timed = right && trial.timing().median_us() > 0;
  return timed ? Outcome::Timed(trial.timing().median_us()) : Outcome::Failed();
}

LearningStrategy::LearningStrategy(const Field& field)
    : cards_(field.cards), codes_(field.codes), states_(field.candidates, State::kFree) {
  if (codes_.empty()) {
    codes_.resize(field.candidates);
    std::iota(codes_.begin(), codes_.end(), 0);
  }
  told_of_.assign(codes_.empty() ? 0 : *std::max_element(codes_.begin(), codes_.end()) + 1, false);
  situation_.open.assign(field.candidates, true);
  for (const auto& [candidate, outcome] : field.known) {
    known_.push_back(candidate);
    states_[candidate] = State::kTold;
    told_of_[codes_[candidate]] = true;
    situation_.open[candidate] = false;
    situation_.told.emplace_back(candidate, outcome);
  }
  situation_.known = known_.size();
}

std::optional<size_t> LearningStrategy::Speculate() {
  for (const std::vector<size_t>* wanted : {&plan_.batch, &plan_.ahead}) {
    for (size_t candidate : *wanted) {
      if (states_[candidate] != State::kFree) continue;
      states_[candidate] = State::kSpeculated;
      return candidate;
    }
  }
  return std::nullopt;
}

Choice LearningStrategy::Choose(const std::vector<size_t>& ready) {
  if (done_) return Choice::Done();
  waits_ = false;
  for (size_t candidate : plan_.batch) {
    waits_ = waits_ || states_[candidate] == State::kFree || states_[candidate] == State::kSpeculated;
    if (states_[candidate] != State::kSpeculated) continue;
    if (std::find(ready.begin(), ready.end(), candidate) == ready.end()) continue;
    states_[candidate] = State::kChosen;
    waits_ = false;
    return Choice::Try(candidate);
  }
  return Choice::Wait();
}

void LearningStrategy::Tell(size_t candidate, const v1::Trial& trial) {
  states_[candidate] = State::kTold;
  told_of_[codes_[candidate]] = true;
  situation_.open[candidate] = false;
  if (trial.compile_ms() > 0) {
    situation_.since_compiled = 0;
  } else if (situation_.since_compiled.has_value()) {
    ++*situation_.since_compiled;
  }
  if (trial.verdict() != v1::VERDICT_LOST) situation_.told.emplace_back(candidate, OutcomeOf(trial));
  if (std::find(plan_.batch.begin(), plan_.batch.end(), candidate) != plan_.batch.end()) --untold_;
  news_ = true;
}

Strategy::Thought LearningStrategy::Think() {
  if (done_ || thinking_) return nullptr;
  situation_.pending = untold_;
  situation_.new_codes = NewCodes();
  const bool wanted = untold_ < cards_ || (waits_ && news_);
  const bool meanwhile = wanted && !ends_ && PlansMore(situation_);
  if (untold_ > 0 && !meanwhile) return nullptr;
  thinking_ = true;
  news_ = false;
  Situation situation = situation_;
  for (size_t candidate : plan_.batch) situation.open[candidate] = false;
  return [this, situation = std::move(situation)] {
    return [this, plan = MakePlan(situation), tried = situation.told.size()]() mutable {
      tried_when_planned_ = tried;
      Adopt(std::move(plan));
    };
  };
}

std::string LearningStrategy::Stage() const {
  return situation_.round == 0 ? "" : absl::StrCat(BatchName(), " ", situation_.round);
}

std::optional<v1::SearchClaim> LearningStrategy::Claim() const {
  if (!confidence_.has_value()) return std::nullopt;
  v1::SearchClaim claim;
  claim.set_within(kWithin);
  claim.set_confidence(*confidence_);
  claim.set_tried(static_cast<int64_t>(tried_when_planned_));
  claim.set_of(static_cast<int64_t>(states_.size()));
  return claim;
}

size_t LearningStrategy::NewCodes() const {
  std::set<size_t> codes;
  for (size_t candidate : plan_.batch) {
    if (states_[candidate] != State::kTold && !told_of_[codes_[candidate]]) codes.insert(codes_[candidate]);
  }
  return codes.size();
}

void LearningStrategy::Adopt(Plan plan) {
  thinking_ = false;
  ++situation_.round;
  confidence_ = plan.confidence;
  situation_.sure_since = plan.sure_since;
  ends_ = plan.batch.empty();
  plan.batch.insert(plan.batch.begin(), plan_.batch.begin(), plan_.batch.end());
  const auto was_told = [this](size_t candidate) { return states_[candidate] == State::kTold; };
  std::erase_if(plan.batch, was_told);  // meanwhile, by another job's trial
  std::erase_if(plan.ahead, was_told);
  plan_ = std::move(plan);
  untold_ = plan_.batch.size();
  done_ = ends_ && untold_ == 0;
  // While some of the batch has no place yet, nothing else keeps it from one.
  const bool all_there = std::all_of(plan_.batch.begin(), plan_.batch.end(),
                                     [this](size_t candidate) { return states_[candidate] != State::kFree; });
  std::set<size_t> wanted(plan_.batch.begin(), plan_.batch.end());
  if (all_there) wanted.insert(plan_.ahead.begin(), plan_.ahead.end());
  for (size_t candidate = 0; candidate < states_.size(); ++candidate) {
    if (states_[candidate] != State::kSpeculated || wanted.contains(candidate)) continue;
    states_[candidate] = State::kFree;
    dropped_.push_back(candidate);
  }
}

}  // namespace attune::search
