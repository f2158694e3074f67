// A trial's message: as it begins, and what it has come to.
#ifndef ATTUNE_SERVER_TRIALS_TRIAL_H_
#define ATTUNE_SERVER_TRIALS_TRIAL_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "attune/v1/trial.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/space/space.h"

namespace attune::trials {

// Bytes of a detail that are kept.
inline constexpr size_t kMostDetail = 4000;

// Everything that is known before it runs.
inline v1::Trial NewTrial(const catalog::TuningKey& tuning_key, const space::Variant& variant, absl::string_view job) {
  v1::Trial trial;
  *trial.mutable_problem() = ToProto(tuning_key.problem);
  trial.set_problem_text(tuning_key.problem_text);
  trial.set_device_id(tuning_key.device.id());
  trial.set_device_uuid(tuning_key.device.uuid());
  *trial.mutable_variant() = variant.ToProto();
  trial.set_policy(tuning_key.policy);
  *trial.mutable_dependencies() = catalog::DependenciesOf(*variant.family, tuning_key);
  trial.set_job(std::string(job));
  return trial;
}

// Right and timed.
inline bool Timed(const v1::Trial& trial) {
  return trial.verdict() == v1::VERDICT_OK && trial.timing().median_us() > 0;
}

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TRIAL_H_
