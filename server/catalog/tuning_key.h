// What a tuning is of: a problem on a device of this host, as trials are made of it today.
#ifndef ATTUNE_SERVER_CATALOG_TUNING_KEY_H_
#define ATTUNE_SERVER_CATALOG_TUNING_KEY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/policy.h"
#include "server/space/family.h"
#include "server/store/store.h"

namespace attune::catalog {

struct TuningKey {
  Problem problem;
  std::string problem_text;
  v1::Device device;
  v1::Policy policy = kDefaultPolicy;
  std::string toolchain;
};

// What a trial of `family` depends on today.
v1::Dependencies DependenciesOf(const space::Family& family, const TuningKey& tuning_key);
bool SameDependencies(const v1::Dependencies& a, const v1::Dependencies& b);

// What the store knows of a problem on the device under today's toolchain and driver, verdicts of the device's class
// included; source hashes are the caller's to compare. Without LOST trials and recipes.
absl::StatusOr<std::vector<v1::Trial>> KnownToday(store::Store& store, const TuningKey& tuning_key);
// What other cards of the device's class have timed, fastest first, at most `most`; source hashes are the caller's too.
absl::StatusOr<std::vector<v1::Trial>> PriorsToday(store::Store& store, const TuningKey& tuning_key, int most);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_TUNING_KEY_H_
