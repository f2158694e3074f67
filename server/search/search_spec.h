// A search of one problem: what is searched, how, and which candidates that makes today.
#ifndef ATTUNE_SERVER_SEARCH_SEARCH_SPEC_H_
#define ATTUNE_SERVER_SEARCH_SEARCH_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/search/candidates.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::search {

// Of a budget of ten, as --on_miss=tune has, they leave room for guesses and draws.
inline constexpr size_t kMostSeeds = 4;

// What near problems are served, the nearest first, and what is expected of all that was tuned, if anything is, after
// the first of them, which was timed; each once, at most kMostSeeds.
std::vector<space::Variant> SeedsOf(std::vector<space::Variant> near, std::optional<space::Variant> expected);

struct SearchSpec {
  catalog::TuningKey tuning_key;
  std::vector<std::string> families;  // empty: all that apply
  v1::Strategy strategy;
  uint64_t seed = 1;  // where the strategy names none
  bool retry_known = false;
  bool known_counts = false;  // against the trials of a strategy that learns
  bool check_all = false;
  space::Selection selection = {};
  std::vector<space::Variant> required = {};     // feasible; tried before seeds and guesses
  std::vector<space::Variant> seeds = {};        // that near problems are served, feasible: tried before the guesses
  std::vector<catalog::TuningKey> sisters = {};  // of the other cards of a search that has several
};

// What would be tried now, the seeds, and the variant of `served` when it is feasible today, included.
absl::StatusOr<CandidateSet> CandidatesNow(const SearchSpec& spec, const std::optional<v1::Incumbent>& served,
                                           const std::vector<std::shared_ptr<const space::Family>>& families,
                                           store::Store& store, const space::Stopped& stopped = nullptr);

// How many of them the strategy would ask for that have no trial yet, time limits left out. Of a strategy that learns,
// with known_counts: at most so many; none where what the search of `served` claimed of as many candidates is enough.
int64_t CountUntried(const CandidateSet& candidates, const SearchSpec& spec,
                     const std::optional<v1::Incumbent>& served);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_SEARCH_SPEC_H_
