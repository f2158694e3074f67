#include "server/catalog/answers/stored_answer.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/attune/objective.h"
#include "server/catalog/result_key.h"
#include "server/catalog/served_timing.h"
#include "server/catalog/staleness.h"

namespace attune::catalog {

namespace {

// Baselines in an answer, the newest; together no larger than this, whatever earlier versions let into the store.
constexpr int kMostBaselines = 100;
constexpr size_t kMostBaselineBytes = 1 << 18;

// Whether the baseline is one of a card that the incumbent is served on, or of the one that timed it.
bool IsFor(const v1::Incumbent& incumbent, const v1::Baseline& baseline, const Host& host) {
  if (baseline.policy() != incumbent.policy()) return false;
  if (baseline.device_id() == incumbent.device_id()) return true;
  return FindDevice(host, baseline.device_id()) != nullptr &&
         ClassNamed(baseline.device_id(), host) == KeyFor(incumbent, host).device_class;
}

void AddBaselines(const v1::Incumbent& incumbent, const std::vector<v1::Baseline>& baselines, const Host& host,
                  v1::GetBestResponse& response) {
  size_t room = kMostBaselineBytes;
  for (const v1::Baseline& baseline : baselines) {
    if (response.baselines_size() == kMostBaselines) break;
    if (!IsFor(incumbent, baseline, host) || baseline.ByteSizeLong() > room) continue;
    room -= baseline.ByteSizeLong();
    *response.add_baselines() = baseline;
  }
}

void SetProvenance(const v1::Trial& trial, const Host& host, v1::GetBestResponse& response) {
  const std::string changed = WhatChanged(trial, host);
  if (!changed.empty()) {
    response.set_provenance(v1::PROVENANCE_STALE);
    response.set_provenance_detail(changed);
  } else if (response.ties_size() > 0) {
    response.set_provenance(v1::PROVENANCE_TIE);
    response.set_provenance_detail(
        absl::StrCat("with ", response.ties_size(), response.ties_size() == 1 ? " other variant" : " other variants"));
  } else {
    response.set_provenance(v1::PROVENANCE_EXACT);
  }
}

// For which cards it is, and what serves other problems and finds the code again: the variant as today's families have
// it.
void SetVariant(const v1::Trial& trial, const Host& host, Answer& answer) {
  const v1::Device* device = DeviceFor(trial, host);
  if (device == nullptr) return;
  answer.device_class = device->fingerprint();
  absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), host.families);
  if (!variant.ok()) return;
  absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*variant, answer.problem, *device);
  if (spec.ok()) answer.compile_key = spec->key;
  if (variant->family->source_hash == trial.dependencies().source_hash()) {
    answer.toolchain = trial.dependencies().toolchain();
  }
  answer.variant = *std::move(variant);
}

void Fill(const v1::Incumbent& incumbent, const v1::Trial& trial, v1::GetBestResponse& response) {
  *response.mutable_problem() = incumbent.problem();
  response.set_device_id(incumbent.device_id());
  *response.mutable_variant() = trial.variant();
  *response.mutable_ties() = incumbent.ties();
  *response.mutable_recipe() = trial.recipe();
  *response.mutable_timing() = ServedTiming(incumbent);
  *response.mutable_measure_time() = incumbent.has_timing() ? incumbent.promote_time() : trial.finish_time();
  response.set_pinned(incumbent.pinned());
  if (incumbent.has_claim()) *response.mutable_claim() = incumbent.claim();
  *response.mutable_geometry() = trial.geometry();
  *response.mutable_accuracy() = trial.accuracy();
  response.set_artifact_sha256(trial.artifact_sha256());
  if (!trial.artifact_sha256().empty()) response.set_artifact_state(v1::ARTIFACT_STATE_READY);
  response.set_trial(trial.name());
  *response.mutable_promote_time() = incumbent.promote_time();
}

// How the alternative's amount, and its time, compare with the fastest's.
std::string Compared(const v1::Alternative& alternative, const v1::Timing& fastest) {
  const v1::Timing& timing = alternative.trial().timing();
  const std::optional<Amount> amount = AmountOf(alternative.objective(), timing);
  if (!amount.has_value()) return "";
  const std::string took = absl::StrCat(AmountText(alternative.objective(), amount->middle), " a run, least ",
                                        AmountName(alternative.objective()));
  const std::optional<Amount> before = AmountOf(alternative.objective(), fastest);
  if (!before.has_value()) {
    return absl::StrCat(took,
                        " of those measured; the fastest has changed since, and its energy is not known: tune with ",
                        "--objective=", Word(alternative.objective()));
  }
  return absl::StrFormat("%s: %.1f %% less than the fastest, in %.3f times its time", took,
                         100 * (1 - amount->middle / before->middle), timing.median_us() / fastest.median_us());
}

// The alternative as an answer of its own, for the cards and problem of `fastest`.
AnswerPtr MakeAlternative(const v1::Incumbent& incumbent, const v1::Alternative& alternative, const Answer& fastest,
                          const Host& host) {
  const v1::Trial& trial = alternative.trial();
  auto answer = std::make_shared<Answer>();
  answer->problem = fastest.problem;
  answer->policy = fastest.policy;
  answer->resources = trial.resources();
  answer->timed_by = {InstanceOf(trial), trial.dependencies().device_fingerprint()};
  v1::Incumbent itself = incumbent;  // for what both have in common
  itself.set_device_id(trial.device_id());
  itself.clear_ties();
  itself.clear_claim();
  *itself.mutable_timing() = trial.timing();
  Fill(itself, trial, answer->response);
  *answer->response.mutable_measure_time() = trial.finish_time();
  *answer->response.mutable_baselines() = fastest.response.baselines();
  answer->response.set_objective(alternative.objective());
  SetProvenance(trial, host, answer->response);
  AddDetail(Compared(alternative, ServedTiming(incumbent)), answer->response);
  SetVariant(trial, host, *answer);
  return answer;
}

}  // namespace

std::string WhyTheFastest(const Answer& answer, v1::Objective objective) {
  const absl::string_view name = AmountName(objective);
  if (answer.response.pinned()) return "it is pinned, which holds for every objective";
  for (const Answer::Alternative& one : answer.alternatives) {
    if (one.objective != objective) continue;
    if (one.answer == nullptr) return absl::StrCat("the fastest, and no other has less ", name, " for certain");
    return absl::StrCat("the fastest: what has the least ", name, " is ",
                        v1::Provenance_Name(one.answer->response.provenance()).substr(11), ", which is not acceptable");
  }
  if (answer.policy == v1::POLICY_COLD) return "chosen by time: energy is not measured with policy cold";
  return absl::StrCat("chosen by time: which has the least ", name,
                      " was never measured; tune with --objective=", Word(objective));
}

absl::StatusOr<AnswerPtr> MakeStoredAnswer(const v1::Incumbent& incumbent, const std::vector<v1::Baseline>& baselines,
                                           const Host& host) {
  const v1::Trial& trial = incumbent.trial();
  const absl::StatusOr<Problem> problem = FromProto(incumbent.problem());
  if (!problem.ok()) return problem.status();
  auto answer = std::make_shared<Answer>();
  answer->problem = *problem;
  answer->policy = incumbent.policy();
  answer->resources = trial.resources();
  answer->timed_by = {InstanceOf(trial), trial.dependencies().device_fingerprint()};
  Fill(incumbent, trial, answer->response);
  AddBaselines(incumbent, baselines, host, answer->response);
  SetProvenance(trial, host, answer->response);
  SetVariant(trial, host, *answer);
  for (const v1::Alternative& one : incumbent.alternatives()) {
    answer->alternatives.push_back(
        {one.objective(), one.has_trial() ? MakeAlternative(incumbent, one, *answer, host) : nullptr});
  }
  return answer;
}

}  // namespace attune::catalog
