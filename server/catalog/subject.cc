#include "server/catalog/subject.h"

namespace attune::catalog {

v1::Dependencies DependenciesOf(const space::Family& family, const Subject& subject) {
  v1::Dependencies dependencies;
  dependencies.set_source_hash(family.source_hash);
  dependencies.set_toolchain(subject.toolchain);
  dependencies.set_driver(subject.device.driver());
  dependencies.set_device_fingerprint(subject.device.fingerprint());
  return dependencies;
}

bool SameDependencies(const v1::Dependencies& a, const v1::Dependencies& b) {
  return a.source_hash() == b.source_hash() && a.toolchain() == b.toolchain() && a.driver() == b.driver() &&
         a.device_fingerprint() == b.device_fingerprint();
}

absl::StatusOr<std::vector<v1::Trial>> KnownToday(store::Store& store, const Subject& subject) {
  v1::Dependencies today;
  today.set_toolchain(subject.toolchain);
  today.set_driver(subject.device.driver());
  today.set_device_fingerprint(subject.device.fingerprint());
  return store.KnownTrials(subject.problem_text, subject.device.id(), subject.policy, today);
}

}  // namespace attune::catalog
