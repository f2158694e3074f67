#include "server/jobs/evaluate_job.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/promotion/contest.h"
#include "server/search/exhaustive_strategy.h"
#include "server/trials/reference.h"
#include "server/trials/trial_phase.h"

namespace attune::jobs {
namespace {

constexpr double kKeepSpeedup = 1.02;

const v1::Trial* FindVariant(const std::vector<v1::Trial>& trials, const std::string& text) {
  for (const v1::Trial& trial : trials) {
    if (trial.variant().text() == text) return &trial;
  }
  return nullptr;
}

void Conclude(const std::string& text, const v1::Trial& tried, const promotion::ContestResult& contest, bool pin,
              v1::EvaluateResult& result) {
  const v1::Trial* variant = FindVariant(contest.play_off, text);
  *result.mutable_trial() = variant != nullptr ? *variant : tried;
  const bool itself = contest.before.has_value() && contest.before->trial().variant().text() == text;
  if (contest.before.has_value() && !itself) {
    const v1::Trial* incumbent = FindVariant(contest.play_off, contest.before->trial().variant().text());
    if (incumbent != nullptr) {
      *result.mutable_incumbent() = *incumbent;
      if (variant != nullptr) {
        result.set_speedup(incumbent->timing().median_us() / variant->timing().median_us());
      }
    }
  }
  const bool served = contest.served.has_value() && contest.served->trial().variant().text() == text;
  if (!served || variant == nullptr) {
    result.set_decision(v1::EvaluateResult::DECISION_REVERT);
  } else {
    result.set_decision(pin ? v1::EvaluateResult::DECISION_PINNED : v1::EvaluateResult::DECISION_KEEP);
  }
  result.set_reason(itself && !pin && variant != nullptr ? absl::StrCat("this already is the incumbent; ", contest.why)
                                                         : contest.why);
}

}  // namespace

absl::StatusOr<space::Variant> RequestedVariant(const v1::Variant& variant, const search::Subject& subject,
                                                const std::vector<std::shared_ptr<const space::Family>>& families) {
  std::string text = variant.text();
  if (text.empty()) {
    text = absl::StrCat(
        variant.family(), ":",
        absl::StrJoin(variant.parameters(), ",", [](std::string* out, const v1::ParameterValue& parameter) {
          absl::StrAppend(out, parameter.name(), "=", parameter.value());
        }));
  }
  absl::StatusOr<space::Variant> parsed =
      space::ParseVariant(text, search::FamiliesFor(families, subject.device.backend(), family::v1::ROLE_SEARCH));
  if (!parsed.ok()) return parsed.status();
  if (absl::Status status = space::Feasible(*parsed, subject.problem, subject.device); !status.ok()) return status;
  return parsed;
}

absl::StatusOr<v1::EvaluateResult> EvaluateVariant(JobContext& context, const search::Subject& subject,
                                                   const space::Variant& variant,
                                                   const std::optional<std::string>& pin) {
  std::vector<space::Variant> contestants = {variant};
  absl::StatusOr<std::optional<v1::Incumbent>> incumbent = promotion::ServedNow(*context.shop.store, subject);
  if (!incumbent.ok()) return incumbent.status();
  if (incumbent->has_value()) {
    absl::StatusOr<space::Variant> today =
        promotion::TodaysVariant((*incumbent)->trial(), subject, context.shop.families);
    if (today.ok()) contestants.push_back(*std::move(today));
  }
  absl::StatusOr<search::CandidateSet> candidates =
      search::GatherCandidates(*context.shop.store, {}, contestants, subject);
  if (!candidates.ok()) return candidates.status();

  search::ExhaustiveStrategy strategy(candidates->all.size());
  context.operation.Update([&](v1::Operation& operation) {
    operation.mutable_progress()->set_trials_total(static_cast<int64_t>(candidates->all.size()));
    operation.mutable_progress()->set_compiles_total(candidates->compile_keys);
  });
  SetPhase(context, v1::OperationProgress::PHASE_REFERENCE, "compiling the reference kernel");
  trials::TrialPhase::Plan plan;
  plan.subject = &subject;
  plan.candidates = &*candidates;
  plan.strategy = &strategy;
  trials::TrialPhase phase(context, std::move(plan));
  absl::StatusOr<worker::v1::PrepareRequest> prepare = trials::MakePrepareRequest(context, subject);
  if (!prepare.ok()) return prepare.status();
  trials::DeviceSession session(context.slot, context.priority, context.operation.stop_token(),
                                context.operation.waiter());
  session.Use(*std::move(prepare));
  SetPhase(context, v1::OperationProgress::PHASE_REFERENCE, "inputs and reference results");
  if (absl::Status status = session.Prepare(); !status.ok()) return status;
  SetPhase(context, v1::OperationProgress::PHASE_TRIALS, absl::StrCat("checking and timing ", variant.ToText()));
  if (absl::Status status = phase.Run(session); !status.ok()) return status;

  v1::EvaluateResult result;
  const std::string text = variant.ToText();
  const v1::Trial& tried = phase.trials().at(*candidates->Find(text));
  if (!promotion::Timed(tried)) {
    *result.mutable_trial() = tried;
    result.set_decision(v1::EvaluateResult::DECISION_REVERT);
    result.set_reason(absl::StrCat(Word(tried.verdict()), ": ", tried.detail()));
    return result;
  }
  promotion::ContestRules rules;
  rules.near = std::numeric_limits<double>::infinity();
  rules.least_speedup = kKeepSpeedup;
  rules.challenger = text;
  rules.pin = pin.has_value();
  rules.why = pin.value_or("");
  absl::StatusOr<promotion::ContestResult> contest = promotion::HoldContest(context, subject, rules, session);
  if (!contest.ok()) return contest.status();
  Conclude(text, tried, *contest, pin.has_value(), result);
  return result;
}

}  // namespace attune::jobs
