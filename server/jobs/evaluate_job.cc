#include "server/jobs/evaluate_job.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/attune/problem.h"
#include "server/base/reason.h"
#include "server/catalog/families.h"
#include "server/search/exhaustive_strategy.h"
#include "server/search/todays_variant.h"
#include "server/trials/reference.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial.h"
#include "server/trials/tuning_key.h"

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

// What is evaluated: a variant that is feasible for the tuning_key. NotFound, InvalidArgument and FailedPrecondition
// say what is wrong with the one that a request names.
struct Question {
  catalog::TuningKey tuning_key;
  space::Variant variant;
};

absl::StatusOr<Question> QuestionOf(const v1::EvaluateVariantRequest& request, const v1::Device& device,
                                    const catalog::Host& host) {
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  absl::StatusOr<catalog::TuningKey> tuning_key = trials::MakeTuningKey(*problem, device, request.policy(), host);
  if (!tuning_key.ok()) return tuning_key.status();
  absl::StatusOr<space::Variant> variant = space::ParseVariant(
      request.variant().text(), catalog::FamiliesFor(host.families, device.backend(), family::v1::ROLE_SEARCH));
  if (!variant.ok()) return variant.status();
  if (absl::Status status = space::Feasible(*variant, *problem, device); !status.ok()) {
    return WithReason(status, "INFEASIBLE");
  }
  return Question{*std::move(tuning_key), *std::move(variant)};
}

// The variant and, where it can run today, the incumbent.
absl::StatusOr<search::CandidateSet> CandidatesOf(const Question& question, const EvaluateJob::Options& options) {
  std::vector<space::Variant> variants = {question.variant};
  const absl::StatusOr<std::optional<v1::Incumbent>> incumbent =
      options.results.Served(catalog::KeyOf(question.tuning_key));
  if (!incumbent.ok()) return incumbent.status();
  if (incumbent->has_value()) {
    absl::StatusOr<space::Variant> today =
        search::TodaysVariant((*incumbent)->trial(), question.tuning_key, options.host.families);
    if (today.ok()) variants.push_back(*std::move(today));
  }
  absl::StatusOr<search::CandidateSet> set =
      search::GatherCandidates(options.means.code.store(), {}, variants, question.tuning_key);
  if (set.ok()) search::DoubtSlow(*set);
  return set;
}

promotion::ContestRules RulesOf(const v1::EvaluateVariantRequest& request, const std::string& variant) {
  promotion::ContestRules rules;
  rules.near = std::numeric_limits<double>::infinity();
  rules.least_speedup = kKeepSpeedup;
  rules.challenger = variant;
  rules.pin = request.pin();
  if (request.pin()) rules.why = request.why();
  return rules;
}

absl::StatusOr<v1::EvaluateResult> Evaluate(const v1::EvaluateVariantRequest& request, const Question& question,
                                            const EvaluateJob::Options& options, const JobRun& run) {
  const trials::Job& job = run.job;
  if (absl::Status open = trials::OpenDevice(run.slot, job); !open.ok()) return open;
  const absl::StatusOr<search::CandidateSet> candidates =
      trials::ReadFor(job, [&] { return CandidatesOf(question, options); });
  if (!candidates.ok()) return candidates.status();
  search::ExhaustiveStrategy strategy(candidates->all.size());
  job.progress.Change([&](v1::OperationProgress& progress) {
    progress.set_trials_total(static_cast<int64_t>(candidates->all.size()));
    progress.set_compiles_total(candidates->compile_keys);
  });
  trials::TrialPhase::Plan plan;
  plan.tuning_key = &question.tuning_key;
  plan.candidates = &*candidates;
  plan.strategy = &strategy;
  plan.check_all = true;  // who asks for one variant wants to know all of it
  trials::TrialPhase phase(options.means, job, plan);
  const auto use = trials::TakeDevice(run.slot, question.tuning_key, options.host.families, options.means.code, job,
                                      trials::InputSeed(question.tuning_key));
  if (!use.ok()) return use.status();
  const std::string text = question.variant.ToText();
  job.progress.SetPhase(v1::OperationProgress::PHASE_TRIALS, absl::StrCat("checking and timing ", text));
  if (absl::Status status = phase.Run(**use); !status.ok()) return status;

  v1::EvaluateResult result;
  const v1::Trial& tried = phase.trials().at(*candidates->Find(text));
  if (!trials::Timed(tried)) {
    *result.mutable_trial() = tried;
    result.set_decision(v1::EvaluateResult::DECISION_REVERT);
    result.set_reason(absl::StrCat(Word(tried.verdict()), ": ", tried.detail()));
    return result;
  }
  if (request.on_miss()) {
    *result.mutable_trial() = tried;
    result.set_decision(v1::EvaluateResult::DECISION_CHECKED);
    result.set_reason("it is right; what is served stays");
    return result;
  }
  const absl::StatusOr<promotion::ContestResult> contest =
      options.contests.Hold(question.tuning_key, RulesOf(request, text), job, **use);
  if (!contest.ok()) return contest.status();
  job.progress.Change(
      [&](v1::OperationProgress& progress) { trials::SetCost({}, (*use)->cost(), phase.compile_ms(), progress); });
  Conclude(text, tried, *contest, request.pin(), result);
  return result;
}

}  // namespace

JobTerms EvaluateJob::TermsOf(const v1::EvaluateVariantRequest& request) const {
  JobTerms terms;
  terms.device = request.device_id();
  if (request.on_miss()) terms.priority = trials::Priority::kIdle;
  return terms;
}

void EvaluateJob::SetDevice(const std::string& device_id, v1::EvaluateVariantRequest& request) const {
  request.set_device_id(device_id);
}

absl::StatusOr<JobTitle> EvaluateJob::AdmitRequest(const v1::EvaluateVariantRequest& request,
                                                   const std::vector<const v1::Device*>& cards) const {
  const v1::Device& device = *cards.front();
  const absl::StatusOr<Question> question = QuestionOf(request, device, options_.host);
  if (!question.ok()) return question.status();
  const absl::string_view what = request.on_miss() ? "check on a miss " : request.pin() ? "serve " : "evaluate ";
  return JobTitle{
      absl::StrCat(what, question->tuning_key.problem_text, " on ", device.id(), ": ", question->variant.ToText()),
      question->tuning_key.problem_text};
}

absl::StatusOr<JobKind::Fill> EvaluateJob::RunRequest(const v1::EvaluateVariantRequest& request,
                                                      const JobRun& run) const {
  const absl::StatusOr<Question> question = QuestionOf(request, run.slot.device(), options_.host);
  if (!question.ok()) return question.status();
  absl::StatusOr<v1::EvaluateResult> result = Evaluate(request, *question, options_, run);
  if (!result.ok()) return result.status();
  return [result = *std::move(result)](v1::Operation& operation) {
    *operation.mutable_evaluate() = result;
    return absl::OkStatus();
  };
}

}  // namespace attune::jobs
