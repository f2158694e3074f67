#include "server/service/views.h"

#include <utility>

namespace attune::service {

void MakeBasic(v1::Operation& operation) {
  operation.clear_response();
  if (operation.has_progress()) operation.mutable_progress()->clear_best();
}

void MakeBasic(v1::Trial& trial) {
  v1::Trial basic;
  basic.set_name(std::move(*trial.mutable_name()));
  basic.set_problem_text(std::move(*trial.mutable_problem_text()));
  basic.set_device_id(std::move(*trial.mutable_device_id()));
  basic.set_device_uuid(std::move(*trial.mutable_device_uuid()));
  if (trial.has_variant()) *basic.mutable_variant() = std::move(*trial.mutable_variant());
  basic.set_policy(trial.policy());
  basic.set_verdict(trial.verdict());
  basic.set_detail(std::move(*trial.mutable_detail()));
  if (trial.has_timing()) {
    basic.mutable_timing()->set_median_us(trial.timing().median_us());
    basic.mutable_timing()->set_low_us(trial.timing().low_us());
    basic.mutable_timing()->set_high_us(trial.timing().high_us());
  }
  basic.set_job(std::move(*trial.mutable_job()));
  if (trial.has_finish_time()) *basic.mutable_finish_time() = std::move(*trial.mutable_finish_time());
  trial = std::move(basic);
}

std::optional<store::JobKind> KindOf(v1::JobKind kind) {
  switch (kind) {
    case v1::JOB_KIND_TUNE:
      return store::JobKind::kTune;
    case v1::JOB_KIND_SWEEP:
      return store::JobKind::kSweep;
    case v1::JOB_KIND_EVALUATE:
      return store::JobKind::kEvaluate;
    case v1::JOB_KIND_SUBMIT:
      return store::JobKind::kSubmit;
    case v1::JOB_KIND_PROFILE:
      return store::JobKind::kProfile;
    case v1::JOB_KIND_SANITIZE:
      return store::JobKind::kSanitize;
    default:
      return std::nullopt;
  }
}

}  // namespace attune::service
