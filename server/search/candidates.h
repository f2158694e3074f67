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
#include "server/catalog/tuning_key.h"
#include "server/search/field.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::search {

struct Candidate {
  space::Variant variant;
  std::string text;
  space::CompileSpec spec;
  // What is known of it under today's dependencies: a trial of this card, or a verdict of its class; without recipe.
  std::optional<v1::Trial> known = {};
  // The names of trials of it that are to be repeated (catalog/holds.h), one of a card.
  std::vector<std::string> doubted = {};
};

struct CandidateSet {
  std::vector<Candidate> all;  // those of one compile key stand together
  std::vector<v1::RemovedByConstraint> removed;
  int64_t compile_keys = 0;

  std::optional<size_t> incumbent;  // that is served, when it is feasible today
  // What other cards of the device's class found fastest, fastest first. Their times are not this card's: they say
  // where to begin.
  std::vector<size_t> priors;
  // The search's seeds, then each family's guess (space::Guess) among what is selected, in the families' order.
  std::vector<size_t> guesses;

  std::optional<size_t> Find(absl::string_view variant_text) const;
  // The candidate that a trial is of, where it ran today's sources.
  std::optional<size_t> FindToday(const v1::Trial& trial) const;
  // Their number, and which are likely: all that a strategy needs that learns nothing.
  Field ToField() const;
  std::map<std::string, size_t, std::less<>> by_text;
};

// `variant` as a candidate; what is known of it is not looked up.
absl::StatusOr<Candidate> MakeCandidate(space::Variant variant, const catalog::TuningKey& tuning_key);

// What a strategy needs listed.
struct Listing {
  bool random = false;     // all but EXHAUSTIVE: a sample of a space that is too large to list will do
  int64_t max_trials = 0;  // 0: no limit
  uint64_t seed = 1;       // of the sample: the same draws the same
  space::Selection selection;
};

// Of a job that has several cards: what another of them, that `tuning_key` names, has tried is known, too, where the
// first has tried nothing. `newest`: or where the other has tried it later, as a job that tries all again has.
absl::Status AddKnownOf(const catalog::TuningKey& tuning_key, store::Store& store, CandidateSet& set,
                        bool newest = false);

// Enumerates `families` and adds the `extra` variants, feasible ones, that are not among theirs, whatever the listing
// selects. Families that do not apply to the problem, or do not understand what is selected, are left out;
// FailedPrecondition names each reason when nothing is left to try. ResourceExhausted, with what can be done about it,
// when there are more than space::kMostVariants and the choice is not random. Cancelled when `stopped`.
// For who checks all of each: what is SLOW is not known, but tried again.
void DoubtSlow(CandidateSet& set);

absl::StatusOr<CandidateSet> GatherCandidates(store::Store& store,
                                              const std::vector<std::shared_ptr<const space::Family>>& families,
                                              const std::vector<space::Variant>& extra,
                                              const catalog::TuningKey& tuning_key, const Listing& listing = Listing(),
                                              const space::Stopped& stopped = nullptr);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_CANDIDATES_H_
