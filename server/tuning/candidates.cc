#include "server/tuning/candidates.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::tuning {
namespace {

absl::Status Add(std::vector<space::Variant> variants, const Subject& subject, CandidateSet& set) {
  for (space::Variant& variant : variants) {
    absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, subject.problem, subject.device);
    if (!spec.ok()) return spec.status();
    std::string text = variant.ToText();
    set.all.push_back({std::move(variant), std::move(text), *std::move(spec), std::nullopt});
  }
  return absl::OkStatus();
}

// Puts candidates of one compile key next to each other, in the order of their first, and finds what is known of each.
absl::Status Complete(store::Store& store, const Subject& subject, CandidateSet& set) {
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < set.all.size(); ++i) first.try_emplace(set.all[i].spec.key, i);
  set.compile_keys = static_cast<int64_t>(first.size());
  std::stable_sort(set.all.begin(), set.all.end(),
                   [&](const Candidate& a, const Candidate& b) { return first.at(a.spec.key) < first.at(b.spec.key); });
  for (size_t i = 0; i < set.all.size(); ++i) set.by_text[set.all[i].text] = i;

  v1::Dependencies today;
  today.set_toolchain(subject.toolchain);
  today.set_driver(subject.device.driver());
  today.set_device_fingerprint(subject.device.fingerprint());
  absl::StatusOr<std::vector<v1::Trial>> known =
      store.KnownTrials(subject.problem_text, subject.device.id(), subject.policy, today);
  if (!known.ok()) return known.status();
  for (v1::Trial& trial : *known) {
    const std::optional<size_t> index = set.Find(trial.variant().text());
    if (!index.has_value() || trial.verdict() == v1::VERDICT_LOST) continue;
    Candidate& candidate = set.all[*index];
    if (trial.dependencies().source_hash() == candidate.variant.family->source_hash) candidate.known = std::move(trial);
  }
  return absl::OkStatus();
}

}  // namespace

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

std::optional<size_t> CandidateSet::Find(absl::string_view variant_text) const {
  const auto it = by_text.find(std::string(variant_text));
  if (it == by_text.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<CandidateSet> GatherCandidates(store::Store& store,
                                              const std::vector<std::shared_ptr<const space::Family>>& families,
                                              const std::vector<space::Variant>& extra, const Subject& subject) {
  CandidateSet set;
  std::vector<std::string> reasons;
  for (const std::shared_ptr<const space::Family>& family : families) {
    if (absl::Status applies = space::Applies(*family, subject.problem, subject.device); !applies.ok()) {
      reasons.push_back(absl::StrCat(family->name(), ": ", applies.message()));
      continue;
    }
    absl::StatusOr<space::Enumeration> enumeration = space::Enumerate(family, subject.problem, subject.device);
    if (!enumeration.ok()) return enumeration.status();
    for (const space::Removed& removed : enumeration->removed) {
      v1::RemovedByConstraint& row = set.removed.emplace_back();
      row.set_family(family->name());
      row.set_constraint(removed.constraint);
      row.set_reason(removed.reason);
      row.set_removed(removed.count);
    }
    if (absl::Status status = Add(std::move(enumeration->variants), subject, set); !status.ok()) return status;
  }
  std::set<std::string> texts;
  for (const Candidate& candidate : set.all) texts.insert(candidate.text);
  for (const space::Variant& variant : extra) {
    if (!texts.insert(variant.ToText()).second) continue;
    if (absl::Status status = Add({variant}, subject, set); !status.ok()) return status;
  }
  if (reasons.size() == families.size() && set.all.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no kernel family applies to ", subject.problem_text, " on ", subject.device.id(), ": ",
                     reasons.empty() ? "there is none" : absl::StrJoin(reasons, "; ")));
  }
  if (absl::Status status = Complete(store, subject, set); !status.ok()) return status;
  for (const std::shared_ptr<const space::Family>& family : families) {
    const absl::StatusOr<space::Variant> guess = space::Guess(family, subject.problem, subject.device);
    if (!guess.ok()) continue;  // nothing of it is feasible
    if (const std::optional<size_t> index = set.Find(guess->ToText())) set.guesses.push_back(*index);
  }
  return set;
}

std::vector<std::shared_ptr<const space::Family>> FamiliesFor(
    const std::vector<std::shared_ptr<const space::Family>>& families, v1::Backend backend, family::v1::Role role,
    const std::vector<std::string>& names) {
  std::vector<std::shared_ptr<const space::Family>> some;
  for (const std::shared_ptr<const space::Family>& family : families) {
    const family::v1::Role own =
        family->manifest.role() == family::v1::ROLE_UNSPECIFIED ? family::v1::ROLE_SEARCH : family->manifest.role();
    if (own != role || family->manifest.backend() != backend) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), family->name()) == names.end()) continue;
    some.push_back(family);
  }
  return some;
}

v1::Trial NewTrial(const Subject& subject, const space::Variant& variant, absl::string_view job) {
  v1::Trial trial;
  *trial.mutable_problem() = ToProto(subject.problem);
  trial.set_problem_text(subject.problem_text);
  trial.set_device_id(subject.device.id());
  *trial.mutable_variant() = variant.ToProto();
  trial.set_policy(subject.policy);
  *trial.mutable_dependencies() = DependenciesOf(*variant.family, subject);
  trial.set_job(std::string(job));
  return trial;
}

}  // namespace attune::tuning
