#include "server/submit/try_problem.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/base/seed.h"
#include "server/promotion/play_off.h"
#include "server/search/exhaustive_strategy.h"
#include "server/submit/diagnostics.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial.h"

namespace attune::submit {
namespace {

struct Chosen {
  std::vector<space::Variant> variants;  // the guess first
  int64_t feasible = 0;
  std::string nothing;  // why there are none
};

std::string WhatRemoves(const space::Enumeration& space) {
  std::string reasons = "no variant is feasible";
  absl::string_view separator = ": ";
  for (const space::Removed& removed : space.removed) {
    absl::StrAppend(&reasons, separator, removed.reason, " (", removed.constraint, ")");
    separator = "; ";
  }
  return reasons;
}

// The guess, and as many others as are tried.
absl::StatusOr<Chosen> Choose(const std::shared_ptr<const space::Family>& family, const catalog::TuningKey& key,
                              const trials::Job& job) {
  Chosen chosen;
  if (absl::Status applies = space::Applies(*family, key.problem, key.device); !applies.ok()) {
    chosen.nothing = std::string(applies.message());
    return chosen;
  }
  const auto space = space::Enumerate(family, key.problem, key.device, trials::StoppedWith(job));
  if (!space.ok()) return space.status();
  chosen.feasible = space->count;
  absl::StatusOr<space::Variant> guess = space::Guess(family, key.problem, key.device);
  if (!guess.ok()) {
    chosen.nothing = WhatRemoves(*space);
    return chosen;
  }
  std::vector<space::Variant> others = space->variants;
  if (!space->listed || space->count > kMostTried) {
    auto drawn = space::Sample(family, key.problem, key.device, kMostTried, SeedFrom(family->source_hash),
                               trials::StoppedWith(job));
    if (!drawn.ok()) return drawn.status();
    others = *std::move(drawn);
  }
  std::erase_if(others, [&](const space::Variant& other) { return other.values == guess->values; });
  chosen.variants.push_back(*std::move(guess));
  for (space::Variant& other : others) {
    if (static_cast<int64_t>(chosen.variants.size()) < kMostTried) chosen.variants.push_back(std::move(other));
  }
  return chosen;
}

// Whether it says that the code is bad, whatever the times are.
bool IsBad(const v1::Trial& trial) {
  return store::HoldsForClass(trial.verdict()) && trial.verdict() != v1::VERDICT_INFEASIBLE;
}

// Every candidate, until one of the submission's own is bad: one that hangs takes its time once.
class UntilOneIsBad final : public search::Strategy {
 public:
  UntilOneIsBad(size_t candidates, std::function<bool(size_t)> is_own) : all_(candidates), is_own_(std::move(is_own)) {}

  std::optional<size_t> Speculate() override { return over_ ? std::nullopt : all_.Speculate(); }
  search::Choice Choose(const std::vector<size_t>& ready) override {
    return over_ ? search::Choice::Done() : all_.Choose(ready);
  }
  void Tell(size_t candidate, const v1::Trial& trial) override {
    all_.Tell(candidate, trial);
    over_ = over_ || (is_own_(candidate) && IsBad(trial));
  }
  bool Done() const override { return over_ || all_.Done(); }
  size_t Total() const override { return all_.Total(); }

 private:
  search::ExhaustiveStrategy all_;
  const std::function<bool(size_t)> is_own_;
  bool over_ = false;
};

class Attempt {
 public:
  Attempt(const std::shared_ptr<const space::Family>& family, const catalog::TuningKey& tuning_key,
          const std::optional<Base>& base, const Means& means, const trials::Job& job)
      : family_(family), tuning_key_(tuning_key), base_(base), means_(means), job_(job) {
    row_.set_problem(tuning_key.problem_text);
  }

  absl::StatusOr<Tried> Run(trials::DeviceSlot& slot) {
    absl::StatusOr<Chosen> chosen = Choose(family_, tuning_key_, job_);
    if (!chosen.ok()) return chosen.status();
    row_.set_variants(chosen->feasible);
    row_.set_variants_tried(static_cast<int32_t>(chosen->variants.size()));
    if (!chosen->nothing.empty()) return Tried{Infeasible(chosen->nothing), std::nullopt};
    if (base_.has_value()) chosen->variants.insert(chosen->variants.begin(), base_->variant);
    absl::StatusOr<search::CandidateSet> candidates =
        trials::ReadFor(job_, [&] { return search::GatherCandidates(store(), {}, chosen->variants, tuning_key_); });
    if (!candidates.ok()) return candidates.status();
    search::DoubtSlow(*candidates);
    const auto use = trials::TakeDevice(slot, tuning_key_, means_.families, means_.trials.code, job_,
                                        trials::InputSeed(tuning_key_));
    if (!use.ok()) return use.status();
    if (absl::Status tried = TryAll(*candidates, **use); !tried.ok()) return tried;
    if (const absl::Status lost = CheckNotLost(); !lost.ok()) return lost;
    if (!trials::Timed(own_)) return Tried{Explained(), std::nullopt};
    const absl::Status played = Play(*candidates, **use);
    job_.progress.Change(
        [&](v1::OperationProgress& progress) { trials::SetCost(cost_before_, (*use)->cost(), compile_ms_, progress); });
    if (!played.ok()) return played;
    return Tried{std::move(row_), gain_};
  }

 private:
  store::Store& store() const { return means_.trials.code.store(); }

  v1::SubmitResult::Row Infeasible(const std::string& why) {
    v1::Trial& trial = *row_.mutable_trial();
    trial.set_problem_text(tuning_key_.problem_text);
    trial.set_verdict(v1::VERDICT_INFEASIBLE);
    trial.set_detail(why);
    return std::move(row_);
  }

  absl::Status TryAll(const search::CandidateSet& candidates, trials::DeviceUse& use) {
    UntilOneIsBad strategy(candidates.all.size(),
                           [&](size_t index) { return candidates.all[index].variant.family == family_; });
    trials::TrialPhase::Plan plan;
    plan.tuning_key = &tuning_key_;
    plan.candidates = &candidates;
    plan.strategy = &strategy;
    plan.check_all = true;  // a submission is right when all of its variants are
    plan.compile_seconds = absl::ToDoubleSeconds(means_.times.compile);
    plan.trial_seconds = absl::ToDoubleSeconds(means_.times.trial);
    job_.progress.Change([&](v1::OperationProgress& progress) {
      plan.cost_before = progress.cost();
      progress.set_trials_total(static_cast<int64_t>(candidates.all.size()));
      progress.set_compiles_total(candidates.compile_keys);
    });
    job_.progress.SetPhase(v1::OperationProgress::PHASE_TRIALS,
                           absl::StrCat("checking and timing ", tuning_key_.problem_text));
    trials::TrialPhase phase(means_.trials, job_, plan);
    if (absl::Status status = phase.Run(use); !status.ok()) return status;
    for (const auto& [index, trial] : phase.trials()) Take(candidates.all[index], trial);
    cost_before_ = plan.cost_before;
    compile_ms_ = phase.compile_ms();
    return absl::OkStatus();
  }

  // Of the own ones the first that is bad, else the fastest, else the first, which is the guess where that is one.
  void Take(const search::Candidate& candidate, const v1::Trial& trial) {
    if (candidate.variant.family != family_) {
      base_trial_ = trial;
      return;
    }
    if (IsBad(own_)) return;
    const bool first = own_.verdict() == v1::VERDICT_UNSPECIFIED || IsBad(trial);
    const bool faster =
        trials::Timed(trial) && (!trials::Timed(own_) || trial.timing().median_us() < own_.timing().median_us());
    if (first || faster) own_ = trial;
  }

  absl::Status CheckNotLost() const {
    for (const v1::Trial* trial : {&own_, &base_trial_}) {
      if (trial->verdict() == v1::VERDICT_LOST) {
        return absl::UnavailableError(
            absl::StrCat("the trial of ", trial->variant().text(), " was lost: ", trial->detail()));
      }
    }
    return absl::OkStatus();
  }

  v1::SubmitResult::Row Explained() {
    *row_.mutable_trial() = own_;
    if (own_.verdict() == v1::VERDICT_COMPILE_ERROR) {
      std::vector<std::string> sources;
      for (const auto& [path, text] : family_->sources) sources.push_back(path);
      const std::vector<v1::Diagnostic> found = DiagnosticsOf(own_.detail(), sources.front(), sources);
      row_.mutable_diagnostics()->Assign(found.begin(), found.end());
    }
    return std::move(row_);
  }

  absl::Status Play(const search::CandidateSet& candidates, trials::DeviceUse& use) {
    std::vector<promotion::Contestant> contestants = {{candidates.all[*candidates.Find(own_.variant().text())], own_}};
    if (trials::Timed(base_trial_)) {
      contestants.push_back({candidates.all[*candidates.Find(base_trial_.variant().text())], base_trial_});
    }
    job_.progress.SetPhase(v1::OperationProgress::PHASE_PLAY_OFF,
                           contestants.size() == 1 ? "checked on fresh data" : "against the base, on fresh data");
    absl::StatusOr<promotion::PlayedOff> played = PlayOff(contestants, use);
    if (!played.ok()) return played.status();
    // A base that fails leaves nobody a time.
    if (contestants.size() > 1 && played->trials.back().verdict() != v1::VERDICT_OK) {
      if (absl::Status lost = NotLost(played->trials.back()); !lost.ok()) return lost;
      base_trial_ = std::move(played->trials.back());
      contestants.pop_back();
      played = PlayOff(contestants, use);
      if (!played.ok()) return played.status();
    }
    v1::Trial& own = played->trials.front();
    if (trials::Timed(own)) {
      absl::StatusOr<v1::Trial> checked =
          promotion::AfterManyRuns(tuning_key_, contestants.front(), std::move(own), means_.trials.code, job_, use);
      if (!checked.ok()) return checked.status();
      own = *std::move(checked);
    }
    if (absl::Status lost = NotLost(own); !lost.ok()) return lost;
    if (!trials::Timed(own)) {
      if (absl::Status kept = Exclude(own); !kept.ok()) return kept;
    }
    own.clear_recipe();
    *row_.mutable_trial() = std::move(own);
    if (contestants.size() > 1) {
      gain_ = played->rounds.Of(0, 1);
      base_trial_ = std::move(played->trials.back());
    }
    if (base_.has_value()) NameBase();
    return absl::OkStatus();
  }

  // Also one that failed, so that the reason can say so.
  void NameBase() {
    row_.set_base(base_->name);
    base_trial_.clear_recipe();
    *row_.mutable_base_trial() = std::move(base_trial_);
  }

  // In the contestants' order; the second is the base.
  absl::StatusOr<promotion::PlayedOff> PlayOff(const std::vector<promotion::Contestant>& contestants,
                                               trials::DeviceUse& use) const {
    const std::optional<size_t> base = contestants.size() > 1 ? std::optional<size_t>(1) : std::nullopt;
    return promotion::PlayOff(tuning_key_, contestants, base,
                              SeedFrom(absl::StrCat(job_.name, " ", tuning_key_.problem_text)), means_.trials.code,
                              job_, use);
  }

  static absl::Status NotLost(const v1::Trial& trial) {
    if (trial.verdict() != v1::VERDICT_LOST) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("the play-off of ", trial.variant().text(), " was lost: ", trial.detail()));
  }

  // Right once, and not on fresh data: recorded, so that nobody takes it for right again.
  absl::Status Exclude(v1::Trial& trial) const {
    trial.set_detail(absl::StrCat("second check, on fresh data: ", trial.detail()));
    trial.set_job(job_.name);
    trial.clear_identical_to();
    trial.clear_compile_ms();
    if (trial.verdict() == v1::VERDICT_OK) trial.set_verdict(v1::VERDICT_UNSTABLE);  // right, but without a timing
    SetTimestamp(absl::Now(), trial.mutable_finish_time());
    absl::StatusOr<std::string> name =
        trials::WriteFor(job_, [&](const store::JobWrite& write) { return store().AppendTrial(trial, write); });
    if (!name.ok()) return name.status();
    trial.set_name(*std::move(name));
    return absl::OkStatus();
  }

  const std::shared_ptr<const space::Family>& family_;
  const catalog::TuningKey& tuning_key_;
  const std::optional<Base>& base_;
  const Means& means_;
  const trials::Job& job_;
  v1::SubmitResult::Row row_;
  v1::Trial own_;
  v1::Trial base_trial_;
  std::optional<measure::Gain> gain_;
  v1::OperationCost cost_before_;  // of the job, on problems before this one
  double compile_ms_ = 0;
};

}  // namespace

absl::StatusOr<Tried> TryProblem(const std::shared_ptr<const space::Family>& family,
                                 const catalog::TuningKey& tuning_key, const std::optional<Base>& base,
                                 const Means& means, trials::DeviceSlot& slot, const trials::Job& job) {
  return Attempt(family, tuning_key, base, means, job).Run(slot);
}

}  // namespace attune::submit
