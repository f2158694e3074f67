#include "server/store/rows/trial_columns.h"

#include <limits>

#include "proto/attune/quote.h"

namespace attune::store {

double RankOf(const v1::Trial& trial) {
  const bool timed = trial.verdict() == v1::VERDICT_OK && trial.timing().median_us() > 0;
  return timed ? trial.timing().median_us() : std::numeric_limits<double>::infinity();
}

std::string BodyOf(const v1::Trial& trial) {
  v1::Trial body = trial;
  body.clear_name();
  body.clear_problem_text();
  body.clear_device_id();
  body.clear_device_uuid();
  body.clear_variant();
  body.clear_policy();
  body.clear_verdict();
  body.clear_recipe();
  body.clear_dependencies();
  body.clear_job();
  body.clear_finish_time();
  body.clear_profile();
  body.clear_sanitizing();
  return body.SerializeAsString();
}

absl::Status NoTrial(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("trial ", Quoted(name), " does not exist; names look like trials/123"));
}

absl::Status NothingKnown(const TrialKey& key) {
  return absl::NotFoundError(absl::StrCat("no trial of ", key.variant_text, " for ", key.problem_text, " on ",
                                          key.device.id, " under these dependencies"));
}

}  // namespace attune::store
