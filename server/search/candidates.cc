#include "server/search/candidates.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/proto_time.h"
#include "server/catalog/holds.h"

namespace attune::search {
namespace {

absl::Status TooLarge(const space::Family& family, const space::Enumeration& space,
                      const catalog::TuningKey& tuning_key) {
  return absl::ResourceExhaustedError(absl::StrCat(
      family.name(), " has ", space.counted ? "" : "more than ", space.count, " variants for ", tuning_key.problem_text,
      " on ", tuning_key.device.id(), "; a tuning tries at most ", space::kMostVariants,
      " one by one: have another strategy draw from them (--strategy guided), name other families with --family, or "
      "give the "
      "parameters in its manifest fewer values"));
}

// The variants of one family; where there are more than `room`, as many of them, drawn at random, as the search needs.
absl::StatusOr<std::vector<space::Variant>> List(const std::shared_ptr<const space::Family>& family,
                                                 space::Enumeration& space, const catalog::TuningKey& tuning_key,
                                                 int64_t room, const Listing& listing, const space::Stopped& stopped) {
  if (space.listed && space.count <= room) return std::move(space.variants);
  if (!listing.random) return TooLarge(*family, space, tuning_key);
  const int64_t wanted = listing.max_trials > 0 ? std::min(listing.max_trials, room) : room;
  return space::Sample(family, tuning_key.problem, tuning_key.device, wanted, listing.seed, stopped, listing.selection);
}

absl::Status Add(std::vector<space::Variant> variants, const catalog::TuningKey& tuning_key,
                 const space::Stopped& stopped, CandidateSet& set) {
  for (space::Variant& variant : variants) {
    if (stopped && stopped()) return absl::CancelledError("stopped");
    absl::StatusOr<Candidate> candidate = MakeCandidate(std::move(variant), tuning_key);
    if (!candidate.ok()) return candidate.status();
    set.all.push_back(*std::move(candidate));
  }
  return absl::OkStatus();
}

bool IsSelected(const space::Variant& variant, const catalog::TuningKey& tuning_key,
                const space::Selection& selection) {
  if (selection.where.empty()) return true;
  return space::IsTrueOf(variant, selection.where, tuning_key.problem, tuning_key.device).value_or(false);
}

constexpr int kMostPriors = 16;  // enough for every play-off's field; the rest is searched as if there were none

// The best time that can be relied on; 0: none.
double BestUs(const std::vector<v1::Trial>& known, const CandidateSet& set) {
  double best_us = 0;
  for (const v1::Trial& trial : known) {
    const v1::Timing& timing = trial.timing();
    const bool timed = trial.verdict() == v1::VERDICT_OK && timing.median_us() > 0;
    if (!timed || timing.contended() || timing.given_up() || !set.FindToday(trial).has_value()) continue;
    if (best_us == 0 || timing.median_us() < best_us) best_us = timing.median_us();
  }
  return best_us;
}

// Puts candidates of one compile key next to each other, in the order of their first, and finds what is known of each.
absl::Status Complete(store::Store& store, const catalog::TuningKey& tuning_key, CandidateSet& set) {
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < set.all.size(); ++i) first.try_emplace(set.all[i].spec.key, i);
  set.compile_keys = static_cast<int64_t>(first.size());
  std::stable_sort(set.all.begin(), set.all.end(),
                   [&](const Candidate& a, const Candidate& b) { return first.at(a.spec.key) < first.at(b.spec.key); });
  for (size_t i = 0; i < set.all.size(); ++i) set.by_text[set.all[i].text] = i;

  if (absl::Status status = AddKnownOf(tuning_key, store, set); !status.ok()) return status;
  const absl::StatusOr<std::vector<v1::Trial>> priors = catalog::PriorsToday(store, tuning_key, kMostPriors);
  if (!priors.ok()) return priors.status();
  for (const v1::Trial& trial : *priors) {
    const std::optional<size_t> index = set.FindToday(trial);
    if (index.has_value()) set.priors.push_back(*index);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Candidate> MakeCandidate(space::Variant variant, const catalog::TuningKey& tuning_key) {
  absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, tuning_key.problem, tuning_key.device);
  if (!spec.ok()) return spec.status();
  std::string text = variant.ToText();
  return Candidate{std::move(variant), std::move(text), *std::move(spec)};
}

std::optional<size_t> CandidateSet::Find(absl::string_view variant_text) const {
  const auto it = by_text.find(std::string(variant_text));
  if (it == by_text.end()) return std::nullopt;
  return it->second;
}

std::optional<size_t> CandidateSet::FindToday(const v1::Trial& trial) const {
  const std::optional<size_t> index = Find(trial.variant().text());
  if (!index.has_value()) return std::nullopt;
  if (trial.dependencies().source_hash() != all[*index].variant.family->source_hash) return std::nullopt;
  return index;
}

Field CandidateSet::ToField() const {
  Field field;
  field.candidates = all.size();
  field.likely = {incumbent, priors, guesses};
  std::map<std::string, size_t> sizes;
  for (const Candidate& candidate : all) ++sizes[candidate.variant.family->name()];
  std::map<std::string, size_t> numbers;
  for (const Candidate& candidate : all) {
    // One that is alone, as an incumbent of a family that is not searched, has no turns of its own.
    const std::string& name = candidate.variant.family->name();
    field.likely.families.push_back(numbers.try_emplace(sizes[name] > 1 ? name : "", numbers.size()).first->second);
  }
  return field;
}

void DoubtSlow(CandidateSet& set) {
  for (Candidate& candidate : set.all) {
    if (!candidate.known.has_value() || candidate.known->verdict() != v1::VERDICT_SLOW) continue;
    candidate.doubted.push_back(candidate.known->name());
    candidate.known.reset();
  }
}

absl::Status AddKnownOf(const catalog::TuningKey& tuning_key, store::Store& store, CandidateSet& set, bool newest) {
  absl::StatusOr<std::vector<v1::Trial>> known = catalog::KnownToday(store, tuning_key);
  if (!known.ok()) return known.status();
  const double best_us = BestUs(*known, set);
  for (v1::Trial& trial : *known) {
    const std::optional<size_t> index = set.FindToday(trial);
    if (!index.has_value()) continue;
    Candidate& candidate = set.all[*index];
    const bool later =
        newest && candidate.known.has_value() && TimeOf(trial.finish_time()) > TimeOf(candidate.known->finish_time());
    if (candidate.known.has_value() && !later) continue;
    if (catalog::Holds(trial, best_us)) {
      candidate.known = std::move(trial);
    } else {
      candidate.doubted.push_back(trial.name());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CandidateSet> GatherCandidates(store::Store& store,
                                              const std::vector<std::shared_ptr<const space::Family>>& families,
                                              const std::vector<space::Variant>& extra,
                                              const catalog::TuningKey& tuning_key, const Listing& listing,
                                              const space::Stopped& stopped) {
  CandidateSet set;
  std::vector<std::string> reasons;
  std::vector<space::Variant> guesses;
  for (const std::shared_ptr<const space::Family>& family : families) {
    absl::Status applies = space::Applies(*family, tuning_key.problem, tuning_key.device);
    if (applies.ok()) applies = space::Understands(*family, listing.selection.where);
    if (!applies.ok()) {
      reasons.push_back(absl::StrCat(family->name(), ": ", applies.message()));
      continue;
    }
    absl::StatusOr<space::Enumeration> enumeration =
        space::Enumerate(family, tuning_key.problem, tuning_key.device, stopped, listing.selection);
    if (!enumeration.ok()) return enumeration.status();
    const int64_t room = space::kMostVariants - static_cast<int64_t>(set.all.size());
    absl::StatusOr<std::vector<space::Variant>> variants =
        List(family, *enumeration, tuning_key, room, listing, stopped);
    if (!variants.ok()) return variants.status();
    for (const space::Removed& removed : enumeration->removed) {
      v1::RemovedByConstraint& row = set.removed.emplace_back();
      row.set_family(family->name());
      row.set_constraint(removed.constraint);
      row.set_reason(removed.reason);
      row.set_removed(removed.count);
      row.set_advice(removed.advice);
    }
    if (absl::Status status = Add(*std::move(variants), tuning_key, stopped, set); !status.ok()) return status;
    absl::StatusOr<space::Variant> guess =
        space::Guess(family, tuning_key.problem, tuning_key.device,
                     [&](const space::Variant& variant) { return IsSelected(variant, tuning_key, listing.selection); });
    if (guess.ok()) guesses.push_back(*std::move(guess));  // else nothing of it is feasible
  }
  std::set<std::string> texts;
  for (const Candidate& candidate : set.all) texts.insert(candidate.text);
  for (const std::vector<space::Variant>* more : {&extra, &std::as_const(guesses)}) {
    for (const space::Variant& variant : *more) {
      if (!texts.insert(variant.ToText()).second) continue;
      if (absl::Status status = Add({variant}, tuning_key, stopped, set); !status.ok()) return status;
    }
  }
  if (reasons.size() == families.size() && set.all.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no kernel family applies to ", tuning_key.problem_text, " on ", tuning_key.device.id(), ": ",
                     reasons.empty() ? "there is none" : absl::StrJoin(reasons, "; ")));
  }
  if (absl::Status status = Complete(store, tuning_key, set); !status.ok()) return status;
  for (const space::Variant& guess : guesses) set.guesses.push_back(*set.Find(guess.ToText()));
  return set;
}

}  // namespace attune::search
