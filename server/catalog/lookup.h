// Answers GetBest and Explain from what is known, without starting work.
#ifndef ATTUNE_SERVER_CATALOG_LOOKUP_H_
#define ATTUNE_SERVER_CATALOG_LOOKUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/space/family.h"
#include "server/store/store.h"

namespace attune::catalog {

// What today's answers depend on.
struct World {
  std::vector<v1::Device> devices;
  std::map<v1::Backend, std::string> toolchains;
  std::vector<std::shared_ptr<const space::Family>> families;
};

// Incumbents in memory, ready to serve. Thread-safe; look-ups take a shared lock and touch no disk unless the artifact
// is asked for.
class Lookup {
 public:
  static absl::StatusOr<std::unique_ptr<Lookup>> Create(store::Store* store, World world);
  virtual ~Lookup() = default;

  // EXACT or TIE; STALE; NEAREST; HEURISTIC, whichever comes first and is acceptable. NotFound when none is, with what
  // was tried.
  virtual absl::StatusOr<v1::GetBestResponse> GetBest(const v1::GetBestRequest& request) = 0;
  // Grows whenever an answer may have changed: what was answered under an equal version is still the answer.
  virtual uint64_t version() const = 0;
  // What is served for the incumbent's problem, device and policy has changed, or what is known of it: after each
  // promotion, rollback and new baseline. Reads the store.
  virtual void Changed(const v1::Incumbent& incumbent) = 0;
  // To be called after each recorded baseline: answers carry the newest of each contender.
  virtual void Recorded(const v1::Baseline& baseline) = 0;
};

// What bounds a trial, in words with figures; what weighs most first. `floor_us` 0: not known.
v1::ExplainResponse Explain(const v1::Trial& trial, const v1::Device& device, double floor_us);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_LOOKUP_H_
