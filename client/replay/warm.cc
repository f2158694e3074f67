#include "client/replay/warm.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "proto/attune/problem.h"
#include "server/catalog/answers/problem_distance.h"
#include "server/search/learning_field.h"

namespace attune::replay {
namespace {

// Whether a number of a family, and a column of features, is the same in both.
bool HaveSameNumbers(const v1::Recording& one, const v1::Recording& other) {
  return std::equal(one.families().begin(), one.families().end(), other.families().begin(), other.families().end(),
                    [](const v1::Family& a, const v1::Family& b) {
                      return a.name() == b.name() && a.source_hash() == b.source_hash();
                    }) &&
         std::equal(one.features().begin(), one.features().end(), other.features().begin(), other.features().end());
}

std::optional<double> DistanceOf(const v1::Recording& one, const v1::Recording& other) {
  const auto a = ParseProblem(one.problem());
  const auto b = ParseProblem(other.problem());
  if (!a.ok() || !b.ok() || one.problem() == other.problem() || !HaveSameNumbers(one, other)) return std::nullopt;
  const std::optional<double> distance = catalog::Distance(*a, *b);
  return distance.has_value() && *distance <= search::kFarthest ? distance : std::nullopt;
}

}  // namespace

void Warm(const std::vector<v1::Recording>& recordings, TunedWhere where, std::vector<RecordedSpace>& spaces) {
  for (size_t i = 0; i < recordings.size(); ++i) {
    std::vector<std::pair<double, size_t>> near;
    for (size_t other = 0; other < recordings.size(); ++other) {
      const bool same_model = recordings[i].device_model() == recordings[other].device_model();
      if (where == TunedWhere::kBeforeShipping && !same_model) continue;
      const std::optional<double> distance = DistanceOf(recordings[i], recordings[other]);
      if (distance.has_value()) near.emplace_back(*distance, other);
    }
    std::sort(near.begin(), near.end());
    if (near.size() > search::kMostNeighbours) near.resize(search::kMostNeighbours);
    spaces[i].field.neighbours.clear();
    for (const auto& [distance, other] : near) {
      spaces[i].field.neighbours.push_back(NeighbourOf(spaces[other], distance));
    }
  }
}

}  // namespace attune::replay
