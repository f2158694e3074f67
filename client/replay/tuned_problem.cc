#include "client/replay/tuned_problem.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replay/recorded_space.h"

namespace attune::replay {
namespace {

attune::v1::Resources ResourcesOf(const v1::Row& row) {
  attune::v1::Resources resources;
  resources.set_registers(row.registers());
  resources.set_spill_bytes(row.spill_bytes());
  resources.set_shared_bytes(row.shared_bytes());
  return resources;
}

}  // namespace

catalog::TunedProblem LearnedOf(const TunedProblem& tuned) {
  std::vector<space::Variant> variants;
  std::vector<double> us;
  for (size_t variant : tuned.fastest_first) {
    variants.push_back(tuned.choices.variants[variant]);
    us.push_back(tuned.us[variant]);
  }
  return catalog::LearnedOf(tuned.choices.problem, variants, us);
}

absl::StatusOr<Families> FamiliesOf(const v1::Recording& recording, const Families& families) {
  Families recorded;
  for (const v1::Family& one : recording.families()) {
    const auto family = std::find_if(families.begin(), families.end(), [&](const auto& each) {
      return each->name() == one.name() && each->source_hash == one.source_hash();
    });
    if (family == families.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat(recording.problem(), ": recorded with other sources of ", one.name()));
    }
    recorded.push_back(*family);
  }
  return recorded;
}

Families Recorded(const std::vector<v1::Recording>& recordings, const Families& families) {
  std::set<std::string> names;
  for (const v1::Recording& recording : recordings) {
    for (const v1::Family& family : recording.families()) names.insert(family.name());
  }
  Families recorded;
  for (const auto& family : families) {
    if (names.contains(family->name())) recorded.push_back(family);
  }
  return recorded;
}

absl::StatusOr<TunedProblem> TunedProblemOf(const v1::Recording& recording, const Families& families,
                                            const search::FeatureColumns& columns, const attune::v1::Device& device) {
  if (const auto space = SpaceOf(recording); !space.ok()) return space.status();
  const auto recorded = FamiliesOf(recording, families);
  if (!recorded.ok()) return recorded.status();
  TunedProblem tuned;
  Choices& choices = tuned.choices;
  choices.problem = *ParseProblem(recording.problem());
  for (const v1::Row& row : recording.rows()) {
    space::Variant variant = {.family = (*recorded)[static_cast<size_t>(row.family())],
                              .values = {row.values().begin(), row.values().end()}};
    absl::StatusOr<std::vector<double>> features = columns.Of(variant, choices.problem, device);
    if (!features.ok()) return features.status();
    const bool timed = HasTime(row);
    if (timed) tuned.fastest_first.push_back(choices.variants.size());
    choices.by_text[variant.ToText()] = choices.variants.size();
    choices.variants.push_back(std::move(variant));
    choices.features.push_back(*std::move(features));
    choices.useless.push_back(row.verdict() == attune::v1::VERDICT_INFEASIBLE ||
                              row.verdict() == attune::v1::VERDICT_COMPILE_ERROR);
    tuned.us.push_back(timed ? row.median_us() : 0);
    tuned.resources.push_back(ResourcesOf(row));
  }
  std::stable_sort(tuned.fastest_first.begin(), tuned.fastest_first.end(),
                   [&](size_t a, size_t b) { return tuned.us[a] < tuned.us[b]; });
  return tuned;
}

}  // namespace attune::replay
