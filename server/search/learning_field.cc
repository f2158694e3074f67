#include "server/search/learning_field.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "server/catalog/answers/problem_distance.h"
#include "server/search/feature_columns.h"
#include "server/search/learning_strategy.h"

namespace attune::search {
namespace {

constexpr int kMostIncumbents = 1000;  // looked at: the newest

using FamilyNumbers = std::map<std::string, size_t>;

// The problems nearest to that of the key that something is served for.
absl::StatusOr<std::vector<std::pair<double, Problem>>> ProblemsNearby(const catalog::TuningKey& tuning_key,
                                                                       store::Store& store) {
  store::IncumbentFilter filter;
  filter.device_class = tuning_key.device.fingerprint();
  filter.policy = tuning_key.policy;
  const absl::StatusOr<store::Page<v1::Incumbent>> served = store.ListIncumbents(filter, kMostIncumbents, "");
  if (!served.ok()) return served.status();
  std::vector<std::pair<double, Problem>> near;
  for (const v1::Incumbent& incumbent : served->items) {
    const absl::StatusOr<Problem> problem = ParseProblem(incumbent.problem_text());
    if (!problem.ok() || incumbent.problem_text() == tuning_key.problem_text) continue;
    const std::optional<double> distance = catalog::Distance(*problem, tuning_key.problem);
    if (distance.has_value() && *distance <= kFarthest) near.emplace_back(*distance, *problem);
  }
  std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : ToText(a.second) < ToText(b.second);
  });
  if (near.size() > kMostNeighbours) near.resize(kMostNeighbours);
  return near;
}

// The trials of this card under today's sources.
absl::StatusOr<Neighbour> NeighbourOf(double distance, const Problem& problem, const catalog::TuningKey& tuning_key,
                                      const std::vector<std::shared_ptr<const space::Family>>& families,
                                      const FamilyNumbers& numbers, const FeatureColumns& columns,
                                      store::Store& store) {
  Neighbour neighbour;
  neighbour.distance = distance;
  catalog::TuningKey key = tuning_key;
  key.problem = problem;
  key.problem_text = ToText(problem);
  const absl::StatusOr<std::vector<v1::Trial>> trials = catalog::KnownToday(store, key);
  if (!trials.ok()) return trials.status();
  for (const v1::Trial& trial : *trials) {
    const auto number = numbers.find(trial.variant().family());
    if (number == numbers.end()) continue;
    const absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), families);
    if (!variant.ok() || variant->family->source_hash != trial.dependencies().source_hash()) continue;
    absl::StatusOr<std::vector<double>> features = columns.Of(*variant, problem, tuning_key.device);
    if (!features.ok()) return features.status();
    neighbour.rows.push_back({number->second, *std::move(features), OutcomeOf(trial)});
  }
  return neighbour;
}

}  // namespace

absl::StatusOr<Field> LearningField(const CandidateSet& candidates, const SearchSpec& spec, absl::string_view job,
                                    const std::vector<std::shared_ptr<const space::Family>>& families,
                                    store::Store& store) {
  Field field = candidates.ToField();
  std::vector<std::shared_ptr<const space::Family>> searched;
  FamilyNumbers numbers;
  for (const Candidate& candidate : candidates.all) {
    const auto [it, fresh] = numbers.try_emplace(candidate.variant.family->name(), numbers.size());
    if (fresh) searched.push_back(candidate.variant.family);
  }
  const FeatureColumns columns(searched);
  field.features = columns.names();
  for (size_t i = 0; i < candidates.all.size(); ++i) {
    const Candidate& candidate = candidates.all[i];
    const bool shares = i > 0 && candidates.all[i - 1].spec.key == candidate.spec.key;
    field.codes.push_back(i == 0 ? 0 : field.codes.back() + (shares ? 0 : 1));
    absl::StatusOr<std::vector<double>> features =
        columns.Of(candidate.variant, spec.tuning_key.problem, spec.tuning_key.device);
    if (!features.ok()) return features.status();
    field.points.push_back(
        {numbers.at(candidate.variant.family->name()), candidate.variant.values, *std::move(features)});
    if (!candidate.known.has_value()) continue;
    const bool own = candidate.known->job() == job;
    if (spec.retry_known && !own) continue;
    field.known.emplace_back(i, OutcomeOf(*candidate.known));
    if (own || spec.known_counts) ++field.spent;
  }
  const auto near = ProblemsNearby(spec.tuning_key, store);
  if (!near.ok()) return near.status();
  for (const auto& [distance, problem] : *near) {
    absl::StatusOr<Neighbour> neighbour =
        NeighbourOf(distance, problem, spec.tuning_key, families, numbers, columns, store);
    if (!neighbour.ok()) return neighbour.status();
    field.neighbours.push_back(*std::move(neighbour));
  }
  return field;
}

}  // namespace attune::search
