#include "server/tuning/contest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/tuning/play_off.h"
#include "server/tuning/seed.h"

namespace attune::tuning {
namespace {

constexpr int kMostPromotions = 3;  // tries while others promote in between

// One job's way from trials to a decision.
class Contest {
 public:
  Contest(JobContext& context, const Subject& subject, const CandidateSet& candidates,
          std::map<size_t, v1::Trial> trials, const ContestRules& rules, DeviceSession& session)
      : context_(context),
        subject_(subject),
        candidates_(candidates),
        trials_(std::move(trials)),
        rules_(rules),
        session_(session) {}

  absl::StatusOr<ContestResult> Hold() {
    absl::StatusOr<std::optional<v1::Incumbent>> before = ServedNow(*context_.shop.store, subject_);
    if (!before.ok()) return before.status();
    ContestResult result;
    result.before = *before;
    result.served = *before;
    for (int attempt = 0; attempt < kMostPromotions; ++attempt) {
      const Standing standing = StandingOf(result.served);
      absl::StatusOr<std::vector<size_t>> field = PlayOffAll(standing);
      if (!field.ok()) return field.status();
      if (absl::Status status = CheckNotLost(result.served); !status.ok()) return status;
      const Decision decision = Settle(standing, *field, result);
      if (!decision.promote) return result;
      absl::StatusOr<v1::Incumbent> promoted = Promote(*result.winner, result.served, decision.why);
      if (promoted.ok()) {
        result.promoted = true;
        result.served = *std::move(promoted);
        return result;
      }
      if (!absl::IsAborted(promoted.status())) return promoted.status();
      absl::StatusOr<std::optional<v1::Incumbent>> now = ServedNow(*context_.shop.store, subject_);
      if (!now.ok()) return now.status();
      result.served = *std::move(now);
    }
    return absl::AbortedError(absl::StrCat("other jobs promoted variants for ", subject_.problem_text, " ",
                                           kMostPromotions, " times while this one decided"));
  }

 private:
  Standing StandingOf(const std::optional<v1::Incumbent>& incumbent) const {
    Standing standing;
    if (!incumbent.has_value()) return standing;
    standing.exists = true;
    const v1::Trial& trial = incumbent->trial();
    const std::optional<size_t> index = candidates_.Find(trial.variant().text());
    if (!index.has_value()) {
      standing.absence = absl::StrCat("(", trial.variant().text(), ") is no longer among the variants");
      return standing;
    }
    standing.stale =
        !SameDependencies(trial.dependencies(), DependenciesOf(*candidates_.all[*index].variant.family, subject_));
    const auto today = trials_.find(*index);
    if (today == trials_.end() || !Timed(today->second)) {
      standing.absence = absl::StrCat("(", trial.variant().text(), ") has no good trial under today's dependencies: ",
                                      today == trials_.end() ? "not tried" : today->second.detail());
      return standing;
    }
    standing.contestant = index;
    return standing;
  }

  // Nobody takes the place of an incumbent that was not compared for reasons that are not its own.
  absl::Status CheckNotLost(const std::optional<v1::Incumbent>& incumbent) const {
    if (!incumbent.has_value()) return absl::OkStatus();
    const std::optional<size_t> index = candidates_.Find(incumbent->trial().variant().text());
    if (!index.has_value() || !trials_.contains(*index)) return absl::OkStatus();
    const v1::Trial& trial = trials_.at(*index);
    if (trial.verdict() != v1::VERDICT_LOST) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the incumbent's trial was lost: ", trial.detail()));
  }

  // Plays off until a whole field has come through; leaves the timings in timed_. Returns the field.
  absl::StatusOr<std::vector<size_t>> PlayOffAll(const Standing& standing) {
    while (true) {
      const std::vector<size_t> field =
          PickContestants(trials_, context_.shop.play_off_size, standing.contestant, rules_.near);
      if (field.empty()) return field;
      SetPhase(context_, v1::OperationProgress::PHASE_PLAY_OFF,
               absl::StrCat(field.size(), field.size() == 1 ? " contestant" : " contestants",
                            ", checked on fresh data and timed in turn"));
      absl::StatusOr<std::vector<v1::Trial>> results =
          PlayOff(context_, subject_, candidates_, trials_, field,
                  SeedFrom(absl::StrCat(context_.operation.name(), " ", subject_.problem_text)), session_);
      if (!results.ok()) return results.status();
      bool whole = true;
      for (size_t i = 0; i < field.size(); ++i) {
        if (Timed((*results)[i])) continue;
        if (absl::Status status = Exclude(field[i], std::move((*results)[i])); !status.ok()) return status;
        whole = false;
      }
      if (!whole) continue;
      timed_ = *std::move(results);
      return field;
    }
  }

  // Who was right once and is not on fresh data.
  absl::Status Exclude(size_t index, v1::Trial trial) {
    trial.set_detail(absl::StrCat("second check, on fresh data: ", trial.detail()));
    trial.set_job(context_.operation.name());
    trial.clear_identical_to();
    trial.clear_compile_ms();
    if (trial.verdict() == v1::VERDICT_OK) trial.set_verdict(v1::VERDICT_UNSTABLE);  // right, but without a timing
    SetTimestamp(absl::Now(), trial.mutable_finish_time());
    absl::StatusOr<std::string> name = context_.shop.store->AppendTrial(trial);
    if (!name.ok()) return name.status();
    trial.set_name(*std::move(name));
    trial.clear_recipe();
    trials_[index] = std::move(trial);
    return absl::OkStatus();
  }

  Decision Settle(Standing standing, const std::vector<size_t>& field, ContestResult& result) {
    if (standing.contestant.has_value()) {
      const auto place = std::find(field.begin(), field.end(), *standing.contestant);
      if (place != field.end()) {
        standing.contestant = place - field.begin();
      } else {
        standing.absence = absl::StrCat("failed: ", trials_.at(*standing.contestant).detail());
        standing.contestant.reset();
      }
    }
    if (field.empty()) timed_.clear();
    Decision decision = Decide(timed_, standing, rules_.least_speedup);
    result.why = decision.why;
    result.winner.reset();
    if (decision.best.has_value()) result.winner = timed_[*decision.best];
    std::vector<size_t> by_time(timed_.size());
    std::iota(by_time.begin(), by_time.end(), size_t{0});
    std::stable_sort(by_time.begin(), by_time.end(), [this](size_t a, size_t b) {
      return timed_[a].timing().median_us() < timed_[b].timing().median_us();
    });
    result.play_off.clear();
    for (size_t i : by_time) result.play_off.push_back(timed_[i]);
    return decision;
  }

  absl::StatusOr<v1::Incumbent> Promote(const v1::Trial& winner, const std::optional<v1::Incumbent>& before,
                                        const std::string& why) {
    v1::Incumbent incumbent;
    *incumbent.mutable_problem() = ToProto(subject_.problem);
    incumbent.set_problem_text(subject_.problem_text);
    incumbent.set_device_id(subject_.device.id());
    incumbent.set_policy(subject_.policy);
    *incumbent.mutable_trial() = winner;
    SetTimestamp(absl::Now(), incumbent.mutable_promote_time());
    incumbent.set_job(context_.operation.name());
    incumbent.set_why(why);
    return context_.shop.store->Promote(incumbent, before.has_value() ? before->name() : "");
  }

  JobContext& context_;
  const Subject& subject_;
  const CandidateSet& candidates_;
  std::map<size_t, v1::Trial> trials_;
  const ContestRules rules_;
  DeviceSession& session_;
  std::vector<v1::Trial> timed_;  // of the last field
};

}  // namespace

absl::StatusOr<std::optional<v1::Incumbent>> ServedNow(store::Store& store, const Subject& subject) {
  absl::StatusOr<v1::Incumbent> incumbent =
      store.GetIncumbent(subject.problem_text, subject.device.id(), subject.policy);
  if (absl::IsNotFound(incumbent.status())) return std::nullopt;
  if (!incumbent.ok()) return incumbent.status();
  return *std::move(incumbent);
}

absl::StatusOr<space::Variant> TodaysVariant(const v1::Incumbent& incumbent, const Subject& subject,
                                             const std::vector<std::shared_ptr<const space::Family>>& families) {
  absl::StatusOr<space::Variant> variant = space::ParseVariant(incumbent.trial().variant().text(), families);
  if (!variant.ok()) return variant.status();
  if (variant->family->manifest.backend() != subject.device.backend()) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel family ", variant->family->name(), " is not for ", subject.device.id()));
  }
  if (absl::Status status = space::Feasible(*variant, subject.problem, subject.device); !status.ok()) return status;
  return variant;
}

absl::StatusOr<ContestResult> HoldContest(JobContext& context, const Subject& subject, const CandidateSet& candidates,
                                          std::map<size_t, v1::Trial> trials, const ContestRules& rules,
                                          DeviceSession& session) {
  absl::StatusOr<ContestResult> result =
      Contest(context, subject, candidates, std::move(trials), rules, session).Hold();
  // Ties may have changed even where the incumbent has not.
  if (result.ok() && result->served.has_value()) context.shop.promoted(*result->served);
  return result;
}

}  // namespace attune::tuning
