#include "server/service/validate.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/problem.h"
#include "server/service/errors.h"
#include "server/space/space.h"

namespace attune::service {
namespace {

constexpr size_t kMaxRequestId = 128;
constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

absl::Status Invalid(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status NormaliseProblem(v1::Problem* problem) {
  absl::StatusOr<Problem> plain = FromProto(*problem);
  if (!plain.ok()) return WithReason(plain.status(), "INVALID_PROBLEM");
  *problem = ToProto(*plain);
  return absl::OkStatus();
}

absl::Status NormalisePolicy(v1::Policy policy, v1::Policy* out) {
  if (!v1::Policy_IsValid(policy)) return Invalid(absl::StrCat("policy is ", policy, "; allowed are HOT and COLD"));
  *out = policy == v1::POLICY_UNSPECIFIED ? v1::POLICY_HOT : policy;
  return absl::OkStatus();
}

std::string DeviceIds(const Known& known) {
  return known.devices.empty() ? "none (this host has no device)"
                               : absl::StrJoin(known.devices, ", ", [](std::string* out, const v1::Device& device) {
                                   absl::StrAppend(out, device.id());
                                 });
}

// For work: the device must be here.
absl::Status PresentDevice(std::string* id, const Known& known) {
  if (known.devices.empty()) {
    return WithReason(absl::FailedPreconditionError(
                          "this host has no device to run kernels on; `attune devices` says which back ends are "
                          "missing and why"),
                      "NO_DEVICE");
  }
  if (id->empty()) {
    *id = known.devices.front().id();
    return absl::OkStatus();
  }
  for (const v1::Device& device : known.devices) {
    if (device.id() == *id) return absl::OkStatus();
  }
  return WithReason(absl::NotFoundError(absl::StrCat("device_id is '", *id, "'; here are ", DeviceIds(known))),
                    "UNKNOWN_DEVICE");
}

// For look-ups: any name will do, as results may have been tuned elsewhere.
void DefaultDevice(std::string* id, const Known& known) {
  if (id->empty() && !known.devices.empty()) *id = known.devices.front().id();
}

template <typename Names>
absl::Status KnownFamilies(const Names& names, const Known& known) {
  for (const std::string& name : names) {
    bool found = false;
    for (const auto& family : known.families) found = found || family->name() == name;
    if (!found) {
      return WithReason(absl::NotFoundError(absl::StrCat("family '", name, "' is unknown; there are ",
                                                         absl::StrJoin(known.families, ", ",
                                                                       [](std::string* out, const auto& family) {
                                                                         absl::StrAppend(out, family->name());
                                                                       }))),
                        "UNKNOWN_FAMILY");
    }
  }
  return absl::OkStatus();
}

absl::Status RequestId(absl::string_view id) {
  if (id.size() <= kMaxRequestId) return absl::OkStatus();
  return Invalid(absl::StrCat("request_id has ", id.size(), " characters; allowed are ", kMaxRequestId));
}

absl::Status NonNegative(absl::string_view field, const google::protobuf::Duration& duration) {
  if (google::protobuf::util::TimeUtil::DurationToNanoseconds(duration) >= 0) return absl::OkStatus();
  return Invalid(absl::StrCat(field, " is negative; allowed are 0 (no limit) and longer"));
}

template <typename... Statuses>
absl::Status FirstError(Statuses... statuses) {
  for (const absl::Status& status : {absl::Status(statuses)...}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Canonical, so that filters match however the problem was spelled. Empty stays empty.
absl::Status NormaliseText(std::string* text) {
  if (text->empty()) return absl::OkStatus();
  absl::StatusOr<Problem> problem = ParseProblem(*text);
  if (!problem.ok()) return WithReason(problem.status(), "INVALID_PROBLEM");
  *text = ToText(*problem);
  return absl::OkStatus();
}

// Fields that every request for a problem on a device has.
template <typename Request>
absl::Status ProblemAndPolicy(Request& request) {
  if (absl::Status status = NormaliseProblem(request.mutable_problem()); !status.ok()) return status;
  v1::Policy policy = v1::POLICY_HOT;
  if (absl::Status status = NormalisePolicy(request.policy(), &policy); !status.ok()) return status;
  request.set_policy(policy);
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(v1::GetBestRequest& request, const Known& known) {
  for (const int provenance : request.acceptable()) {
    if (!v1::Provenance_IsValid(provenance) || provenance == v1::PROVENANCE_UNSPECIFIED) {
      return Invalid(
          absl::StrCat("acceptable has ", provenance, "; allowed are EXACT, TIE, STALE, NEAREST and HEURISTIC"));
    }
  }
  DefaultDevice(request.mutable_device_id(), known);
  return ProblemAndPolicy(request);
}

absl::Status Validate(v1::TuneRequest& request, const Known& known) {
  v1::Strategy& strategy = *request.mutable_strategy();
  if (!v1::Strategy::Kind_IsValid(strategy.kind())) {
    return Invalid(absl::StrCat("strategy.kind is ", strategy.kind(), "; allowed are EXHAUSTIVE and RANDOM"));
  }
  if (strategy.kind() == v1::Strategy::KIND_UNSPECIFIED) strategy.set_kind(v1::Strategy::KIND_EXHAUSTIVE);
  if (strategy.max_trials() < 0) {
    return Invalid(
        absl::StrCat("strategy.max_trials is ", strategy.max_trials(), "; allowed are 0 (no limit) and more"));
  }
  return FirstError(ProblemAndPolicy(request), RequestId(request.request_id()),
                    NonNegative("strategy.max_time", strategy.max_time()), KnownFamilies(request.families(), known),
                    PresentDevice(request.mutable_device_id(), known));
}

absl::Status Validate(v1::SweepRequest& request, const Known& known) {
  v1::SweepPlan& plan = *request.mutable_plan();
  if (plan.shapes().empty()) return Invalid("plan.shapes is empty; a sweep needs at least one problem");
  if (plan.regression() < 0 || !std::isfinite(plan.regression())) {
    return Invalid(absl::StrCat("plan.regression is ", plan.regression(), "; allowed are shares such as 0.02"));
  }
  if (plan.budget().trials_per_problem() < 0) {
    return Invalid(absl::StrCat("plan.budget.trials_per_problem is ", plan.budget().trials_per_problem(),
                                "; allowed are 0 (exhaustive) and more"));
  }
  v1::Policy policy = v1::POLICY_HOT;
  if (absl::Status status = NormalisePolicy(plan.policy(), &policy); !status.ok()) return status;
  plan.set_policy(policy);
  return FirstError(RequestId(request.request_id()),
                    NonNegative("plan.budget.time_per_problem", plan.budget().time_per_problem()),
                    NonNegative("plan.budget.total_time", plan.budget().total_time()),
                    KnownFamilies(plan.families(), known), PresentDevice(plan.mutable_device_id(), known));
}

absl::Status Validate(v1::EvaluateVariantRequest& request, const Known& known) {
  if (absl::Status status = FirstError(ProblemAndPolicy(request), RequestId(request.request_id()),
                                       PresentDevice(request.mutable_device_id(), known));
      !status.ok()) {
    return status;
  }
  std::string text = request.variant().text();
  if (text.empty()) {
    text = absl::StrCat(
        request.variant().family(), ":",
        absl::StrJoin(request.variant().parameters(), ",", [](std::string* out, const v1::ParameterValue& parameter) {
          absl::StrAppend(out, parameter.name(), "=", parameter.value());
        }));
  }
  absl::StatusOr<space::Variant> variant = space::ParseVariant(text, known.families);
  if (!variant.ok()) return WithReason(variant.status(), "INVALID_VARIANT");
  *request.mutable_variant() = variant->ToProto();
  return absl::OkStatus();
}

absl::Status Validate(v1::PreflightRequest& request, const Known& known) {
  return FirstError(NormaliseProblem(request.mutable_problem()), KnownFamilies(request.families(), known));
}

absl::Status Validate(v1::RollBackRequest& request, const Known& known) {
  DefaultDevice(request.mutable_device_id(), known);
  return ProblemAndPolicy(request);
}

absl::Status Validate(v1::RecordBaselineRequest& request, const Known& known) {
  v1::Baseline& baseline = *request.mutable_baseline();
  if (baseline.contender().empty()) return Invalid("baseline.contender is empty; name who was timed");
  if (!(baseline.median_us() > 0) || !std::isfinite(baseline.median_us())) {
    return Invalid(absl::StrCat("baseline.median_us is ", baseline.median_us(), "; allowed are positive microseconds"));
  }
  DefaultDevice(baseline.mutable_device_id(), known);
  if (absl::Status status = ProblemAndPolicy(baseline); !status.ok()) return status;
  baseline.set_problem_text(ToText(*FromProto(baseline.problem())));
  if (baseline.low_us() == 0) baseline.set_low_us(baseline.median_us());
  if (baseline.high_us() == 0) baseline.set_high_us(baseline.median_us());
  return absl::OkStatus();
}

absl::Status Validate(v1::TrialFilter& filter) { return NormaliseText(filter.mutable_problem()); }

absl::StatusOr<int> PageSize(int page_size) {
  if (page_size < 0 || page_size > kMaxPageSize) {
    return Invalid(
        absl::StrCat("page_size is ", page_size, "; allowed are 0 (", kDefaultPageSize, ") to ", kMaxPageSize));
  }
  return page_size == 0 ? kDefaultPageSize : page_size;
}

}  // namespace attune::service
