#include "server/search/learning_field.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "server/catalog/answers/problem_distance.h"
#include "server/search/feature_columns.h"
#include "server/search/learning_strategy.h"

namespace attune::search {
namespace {

constexpr int kMostIncumbents = 1000;  // looked at: the newest

using FamilyNumbers = std::map<std::string, size_t>;

struct Near {
  double distance = 0;
  Problem problem;
  std::optional<catalog::ShippedProblem> shipped;  // nothing: tuned here
};

// The tuned problems nearest to that of the key.
absl::StatusOr<std::vector<Near>> ProblemsNearby(const catalog::TuningKey& tuning_key,
                                                 const std::vector<catalog::PriorTable>& shipped, store::Store& store) {
  store::IncumbentFilter filter;
  filter.device_class = tuning_key.device.fingerprint();
  filter.policy = tuning_key.policy;
  const absl::StatusOr<store::Page<v1::Incumbent>> served = store.ListIncumbents(filter, kMostIncumbents, "");
  if (!served.ok()) return served.status();
  std::vector<Near> near;
  std::set<std::string> problems = {tuning_key.problem_text};
  const auto add = [&](const Problem& problem, std::optional<catalog::ShippedProblem> of) {
    const std::optional<double> distance = catalog::Distance(problem, tuning_key.problem);
    const bool is_near = distance.has_value() && *distance <= kFarthest;
    if (is_near && problems.insert(ToText(problem)).second) near.push_back({*distance, problem, of});
  };
  for (const v1::Incumbent& incumbent : served->items) {
    const absl::StatusOr<Problem> problem = ParseProblem(incumbent.problem_text());
    if (problem.ok()) add(*problem, std::nullopt);
  }
  for (const auto& of : catalog::ShippedFor(shipped, tuning_key.device, tuning_key.policy)) add(of.problem(), of);
  std::sort(near.begin(), near.end(), [](const Near& a, const Near& b) {
    return a.distance != b.distance ? a.distance < b.distance : ToText(a.problem) < ToText(b.problem);
  });
  if (near.size() > kMostNeighbours) near.resize(kMostNeighbours);
  return near;
}

// As rows of the field.
class NeighbourReader {
 public:
  NeighbourReader(const catalog::TuningKey& tuning_key, const FamilyNumbers& numbers, const FeatureColumns& columns,
                  const std::vector<std::shared_ptr<const space::Family>>& families, store::Store& store)
      : tuning_key_(tuning_key), numbers_(numbers), columns_(columns), families_(families), store_(store) {}

  absl::StatusOr<Neighbour> Read(const Near& near) const {
    Neighbour neighbour;
    neighbour.distance = near.distance;
    absl::Status read =
        near.shipped.has_value() ? AddShipped(*near.shipped, neighbour) : AddTrials(near.problem, neighbour);
    if (!read.ok()) return read;
    return neighbour;
  }

 private:
  // The trials of this card under today's sources.
  absl::Status AddTrials(const Problem& problem, Neighbour& neighbour) const {
    catalog::TuningKey key = tuning_key_;
    key.problem = problem;
    key.problem_text = ToText(problem);
    const absl::StatusOr<std::vector<v1::Trial>> trials = catalog::KnownToday(store_, key);
    if (!trials.ok()) return trials.status();
    for (const v1::Trial& trial : *trials) {
      const absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), families_);
      if (!variant.ok() || variant->family->source_hash != trial.dependencies().source_hash()) continue;
      if (absl::Status added = Add(*variant, problem, OutcomeOf(trial), neighbour); !added.ok()) return added;
    }
    return absl::OkStatus();
  }

  absl::Status AddShipped(const catalog::ShippedProblem& shipped, Neighbour& neighbour) const {
    const catalog::TunedProblem tuned = shipped.Read(families_);
    for (size_t i = 0; i < tuned.variants.size(); ++i) {
      absl::Status added = Add(tuned.variants[i], tuned.problem, Outcome::Timed(tuned.us[i]), neighbour);
      if (!added.ok()) return added;
    }
    return absl::OkStatus();
  }

  // Nothing, where its family is not searched.
  absl::Status Add(const space::Variant& variant, const Problem& problem, const Outcome& outcome,
                   Neighbour& neighbour) const {
    const auto number = numbers_.find(variant.family->name());
    if (number == numbers_.end()) return absl::OkStatus();
    absl::StatusOr<std::vector<double>> features = columns_.Of(variant, problem, tuning_key_.device);
    if (!features.ok()) return features.status();
    neighbour.rows.push_back({number->second, *std::move(features), outcome});
    return absl::OkStatus();
  }

  const catalog::TuningKey& tuning_key_;
  const FamilyNumbers& numbers_;
  const FeatureColumns& columns_;
  const std::vector<std::shared_ptr<const space::Family>>& families_;
  store::Store& store_;
};

}  // namespace

absl::StatusOr<Field> LearningField(const CandidateSet& candidates, const SearchSpec& spec, absl::string_view job,
                                    const std::vector<std::shared_ptr<const space::Family>>& families,
                                    const std::vector<catalog::PriorTable>& shipped, store::Store& store) {
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
  const absl::StatusOr<std::vector<Near>> near = ProblemsNearby(spec.tuning_key, shipped, store);
  if (!near.ok()) return near.status();
  const NeighbourReader reader(spec.tuning_key, numbers, columns, families, store);
  for (const Near& one : *near) {
    absl::StatusOr<Neighbour> neighbour = reader.Read(one);
    if (!neighbour.ok()) return neighbour.status();
    field.neighbours.push_back(*std::move(neighbour));
  }
  return field;
}

}  // namespace attune::search
