#include "server/catalog/tuning_key.h"

#include "server/catalog/host.h"

namespace attune::catalog {
namespace {

v1::Dependencies ButForSources(const TuningKey& tuning_key) {
  v1::Dependencies dependencies;
  dependencies.set_toolchain(tuning_key.toolchain);
  dependencies.set_driver(tuning_key.device.driver());
  dependencies.set_device_fingerprint(tuning_key.device.fingerprint());
  return dependencies;
}

}  // namespace

v1::Dependencies DependenciesOf(const space::Family& family, const TuningKey& tuning_key) {
  v1::Dependencies dependencies = ButForSources(tuning_key);
  dependencies.set_source_hash(family.source_hash);
  return dependencies;
}

bool SameDependencies(const v1::Dependencies& a, const v1::Dependencies& b) {
  return a.source_hash() == b.source_hash() && a.toolchain() == b.toolchain() && a.driver() == b.driver() &&
         a.device_fingerprint() == b.device_fingerprint();
}

absl::StatusOr<std::vector<v1::Trial>> KnownToday(store::Store& store, const TuningKey& tuning_key) {
  return store.KnownTrials(tuning_key.problem_text, InstanceOf(tuning_key.device), tuning_key.policy,
                           ButForSources(tuning_key));
}

absl::StatusOr<std::vector<v1::Trial>> PriorsToday(store::Store& store, const TuningKey& tuning_key, int most) {
  return store.PriorTrials(tuning_key.problem_text, InstanceOf(tuning_key.device), tuning_key.policy,
                           ButForSources(tuning_key), most);
}

}  // namespace attune::catalog
