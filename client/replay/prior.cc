#include "client/replay/prior.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/replay/recorded_space.h"

namespace attune::replay {
namespace {

const v1::Row* FastestOf(const v1::Recording& recording, const std::string& family) {
  const v1::Row* fastest = nullptr;
  for (const v1::Row& row : recording.rows()) {
    if (recording.families(row.family()).name() != family) continue;
    if (!HasTime(row)) continue;
    if (fastest == nullptr || row.median_us() < fastest->median_us()) fastest = &row;
  }
  return fastest;
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
    const v1::Row* const fastest = FastestOf(recording, family);
    if (fastest == nullptr) continue;
    table.source_hash = recording.families(fastest->family()).source_hash();
    table.policy = recording.policy();
    table.rows.push_back({*ParseProblem(recording.problem()), fastest->median_us(), VariantText(recording, *fastest)});
  }
  if (table.rows.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no recording has a time of a variant of ", family));
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const auto& a, const auto& b) { return ToText(a.problem) < ToText(b.problem); });
  const auto again = std::unique(table.rows.begin(), table.rows.end(),
                                 [](const auto& a, const auto& b) { return a.problem == b.problem; });
  table.rows.erase(again, table.rows.end());
  return table;
}

}  // namespace attune::replay
