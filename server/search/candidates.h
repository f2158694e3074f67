// Everything that could be tried for a problem on a device today, and what the store already knows of it.
#ifndef ATTUNE_SERVER_SEARCH_CANDIDATES_H_
#define ATTUNE_SERVER_SEARCH_CANDIDATES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::search {

// One problem's place in the store's keys.
struct Subject {
  Problem problem;
  std::string problem_text;
  v1::Device device;
  v1::Policy policy = v1::POLICY_HOT;
  std::string toolchain;
};

// What a trial of `family` depends on today.
v1::Dependencies DependenciesOf(const space::Family& family, const Subject& subject);
bool SameDependencies(const v1::Dependencies& a, const v1::Dependencies& b);

// What the store knows of a problem under today's toolchain, driver and device; source hashes are the caller's to
// compare. Without LOST trials and recipes.
absl::StatusOr<std::vector<v1::Trial>> KnownToday(store::Store& store, const Subject& subject);

struct Candidate {
  space::Variant variant;
  std::string text;
  space::CompileSpec spec;
  std::optional<v1::Trial> known;  // its newest trial under today's dependencies, LOST excepted; without recipe
};

struct CandidateSet {
  std::vector<Candidate> all;  // those of one compile key stand together
  std::vector<v1::RemovedByConstraint> removed;
  int64_t compile_keys = 0;

  std::vector<size_t> guesses;  // each family's (space::Guess), in the families' order

  std::optional<size_t> Find(absl::string_view variant_text) const;
  std::map<std::string, size_t, std::less<>> by_text;
};

// `variant` as a candidate; what is known of it is not looked up.
absl::StatusOr<Candidate> MakeCandidate(space::Variant variant, const Subject& subject);

// How a strategy chooses, as far as it decides what must be listed.
struct Choice {
  bool random = false;     // RANDOM: a sample of a space that is too large to list will do
  int64_t max_trials = 0;  // 0: no limit
  uint64_t seed = 1;       // of the sample: the same draws the same
};

// Enumerates `families` and adds the `extra` variants, feasible ones, that are not among theirs. Families that do not
// apply to the problem are left out; FailedPrecondition names each reason when nothing is left to try.
// ResourceExhausted, with what can be done about it, when there are more than space::kMostVariants and the choice is
// not random. Cancelled when `stopped`.
absl::StatusOr<CandidateSet> GatherCandidates(store::Store& store,
                                              const std::vector<std::shared_ptr<const space::Family>>& families,
                                              const std::vector<space::Variant>& extra, const Subject& subject,
                                              const Choice& choice = Choice(), const space::Stopped& stopped = nullptr);

// The families of `role` for a back end; of those named in `names`, when it is not empty.
std::vector<std::shared_ptr<const space::Family>> FamiliesFor(
    const std::vector<std::shared_ptr<const space::Family>>& families, v1::Backend backend, family::v1::Role role,
    const std::vector<std::string>& names = {});

// Everything of a trial that is known before it runs.
v1::Trial NewTrial(const Subject& subject, const space::Variant& variant, absl::string_view job);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_CANDIDATES_H_
