#include "server/catalog/subject.h"

#include "server/catalog/host.h"

namespace attune::catalog {
namespace {

v1::Dependencies ButForSources(const Subject& subject) {
  v1::Dependencies dependencies;
  dependencies.set_toolchain(subject.toolchain);
  dependencies.set_driver(subject.device.driver());
  dependencies.set_device_fingerprint(subject.device.fingerprint());
  return dependencies;
}

}  // namespace

v1::Dependencies DependenciesOf(const space::Family& family, const Subject& subject) {
  v1::Dependencies dependencies = ButForSources(subject);
  dependencies.set_source_hash(family.source_hash);
  return dependencies;
}

bool SameDependencies(const v1::Dependencies& a, const v1::Dependencies& b) {
  return a.source_hash() == b.source_hash() && a.toolchain() == b.toolchain() && a.driver() == b.driver() &&
         a.device_fingerprint() == b.device_fingerprint();
}

absl::StatusOr<std::vector<v1::Trial>> KnownToday(store::Store& store, const Subject& subject) {
  return store.KnownTrials(subject.problem_text, InstanceOf(subject.device), subject.policy, ButForSources(subject));
}

absl::StatusOr<std::vector<v1::Trial>> PriorsToday(store::Store& store, const Subject& subject, int most) {
  return store.PriorTrials(subject.problem_text, InstanceOf(subject.device), subject.policy, ButForSources(subject),
                           most);
}

}  // namespace attune::catalog
