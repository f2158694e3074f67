#include "client/replay/prior.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/replay/recorded_space.h"
#include "server/base/thinned.h"

namespace attune::replay {
namespace {

// Of the family, fastest first.
std::vector<const v1::Row*> TimedOf(const v1::Recording& recording, const std::string& family) {
  std::vector<const v1::Row*> timed;
  for (const v1::Row& row : recording.rows()) {
    if (recording.families(row.family()).name() == family && HasTime(row)) timed.push_back(&row);
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const v1::Row* a, const v1::Row* b) { return a->median_us() < b->median_us(); });
  return timed;
}

catalog::PriorTable::Tuned TunedOf(const v1::Recording& recording, const std::vector<const v1::Row*>& fastest_first) {
  catalog::PriorTable::Tuned tuned;
  tuned.problem = *ParseProblem(recording.problem());
  std::vector<double> us;
  for (const v1::Row* row : fastest_first) us.push_back(row->median_us());
  tuned.level_us = catalog::LevelOf(us);
  for (size_t i : Thinned(us.size(), catalog::kMostLearned)) {
    tuned.rows.push_back({us[i], {fastest_first[i]->values().begin(), fastest_first[i]->values().end()}});
  }
  return tuned;
}

}  // namespace

absl::StatusOr<catalog::PriorTable> LearnPrior(const std::vector<v1::Recording>& recordings, const std::string& family,
                                               const attune::v1::Device& device) {
  if (absl::Status status = CheckAreOfOne(recordings); !status.ok()) return status;
  catalog::PriorTable table;
  table.device_model = device.model();
  table.compute_capability = device.compute_capability();
  table.family = family;
  for (const v1::Recording& recording : recordings) {
    if (const auto space = SpaceOf(recording); !space.ok()) return space.status();
    if (recording.device_model() != device.model()) {
      return absl::InvalidArgumentError(absl::StrCat(recording.problem(), " was recorded on ", recording.device_model(),
                                                     "; the table is for ", device.model()));
    }
    const std::vector<const v1::Row*> timed = TimedOf(recording, family);
    if (timed.empty()) continue;
    const v1::Family& recorded = recording.families(timed.front()->family());
    table.source_hash = recorded.source_hash();
    table.parameters.assign(recorded.parameters().begin(), recorded.parameters().end());
    table.policy = recording.policy();
    table.tuned.push_back(TunedOf(recording, timed));
  }
  if (table.tuned.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no recording has a time of a variant of ", family));
  }
  std::stable_sort(table.tuned.begin(), table.tuned.end(),
                   [](const auto& a, const auto& b) { return ToText(a.problem) < ToText(b.problem); });
  const auto again = std::unique(table.tuned.begin(), table.tuned.end(),
                                 [](const auto& a, const auto& b) { return a.problem == b.problem; });
  table.tuned.erase(again, table.tuned.end());
  return table;
}

}  // namespace attune::replay
