#include "server/store/maintenance/retention_pass.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>

namespace attune::store {
namespace {

// A database keeps the size that it once had, and uses its free pages again. It stays below its limit when pages are
// freed in time: from nine tenths of the limit on, until eight are in use.
int64_t Begin(int64_t limit) { return limit - limit / 10; }
int64_t Target(int64_t limit) { return limit - limit / 5; }

class Pass {
 public:
  Pass(RetentionRows& rows, const Retention& retention, const std::function<bool()>& stopped, Retained& retained)
      : rows_(rows), retention_(retention), stopped_(stopped), retained_(retained) {}

  absl::Status Run() {
    absl::StatusOr<std::vector<RetentionUnit>> units = rows_.Units(retention_.now - retention_.grace);
    if (!units.ok()) return units.status();
    std::sort(units->begin(), units->end(),
              [](const RetentionUnit& a, const RetentionUnit& b) { return a.used_ns < b.used_ns; });
    if (absl::Status status = RemoveOld(*units); !status.ok()) return status;
    if (absl::Status status = RemoveForSize(*units); !status.ok()) return status;
    absl::StatusOr<int64_t> bytes = rows_.UsedBytes();
    if (!bytes.ok()) return bytes.status();
    retained_.database_bytes = *bytes;
    return absl::OkStatus();
  }

 private:
  int64_t Before(absl::Duration age) const {
    return age == absl::InfiniteDuration() ? 0 : absl::ToUnixNanos(retention_.now - age);
  }

  absl::Status RemoveOld(std::vector<RetentionUnit>& units) {
    const int64_t before[] = {Before(retention_.job_age), Before(retention_.artifact_age), Before(retention_.trial_age),
                              Before(retention_.retiming_age)};
    std::vector<RetentionUnit> old;
    const auto is_old = [&before](const RetentionUnit& unit) { return unit.used_ns < before[unit.kind]; };
    std::copy_if(units.begin(), units.end(), std::back_inserter(old), is_old);
    std::erase_if(units, is_old);
    for (size_t at = 0; at < old.size() && !stopped_();) {
      if (absl::Status status = RemoveSome(old, at); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status RemoveForSize(const std::vector<RetentionUnit>& units) {
    if (retention_.database_bytes == 0) return absl::OkStatus();
    absl::StatusOr<int64_t> bytes = rows_.UsedBytes();
    if (!bytes.ok()) return bytes.status();
    if (*bytes <= Begin(retention_.database_bytes)) return absl::OkStatus();
    target_ = Target(retention_.database_bytes);
    for (size_t at = 0; at < units.size() && *bytes > *target_ && !stopped_();) {
      if (absl::Status status = RemoveSome(units, at); !status.ok()) return status;
      bytes = rows_.UsedBytes();
      if (!bytes.ok()) return bytes.status();
    }
    return absl::OkStatus();
  }

  // Removes the unit at `at`, or a batch of them where each is one row; moves `at` behind them.
  absl::Status RemoveSome(const std::vector<RetentionUnit>& units, size_t& at) {
    const RetentionUnit first = units[at];
    if (first.kind == RetentionUnit::kTrials) {
      ++at;
      return RemoveTrials(first);
    }
    std::vector<int64_t> ids;
    for (; at < units.size() && units[at].kind == first.kind && ids.size() < kRetentionBatch; ++at)
      ids.push_back(units[at].id);
    const absl::StatusOr<int64_t> removed = rows_.Remove(first.kind, ids);
    if (!removed.ok()) return removed.status();
    CountOf(first.kind) += *removed;
    return absl::OkStatus();
  }

  int64_t& CountOf(RetentionUnit::Kind kind) {
    switch (kind) {
      case RetentionUnit::kJob:
        return retained_.removed_jobs;
      case RetentionUnit::kCompile:
        return retained_.removed_compiles;
      default:
        return retained_.removed_retimings;
    }
  }

  // Over and over, because a trial may go once the older ones of its key have.
  absl::Status RemoveTrials(const RetentionUnit& unit) {
    for (int64_t removed = 1; removed > 0;) {
      removed = 0;
      for (int64_t after = 0; !stopped_();) {
        absl::StatusOr<std::vector<int64_t>> ids = rows_.TrialsToRemove(unit, after);
        if (!ids.ok()) return ids.status();
        if (ids->empty()) break;
        after = ids->back();
        const absl::StatusOr<int64_t> gone = rows_.RemoveTrials(unit, *ids);
        if (!gone.ok()) return gone.status();
        removed += *gone;
        retained_.removed_trials += *gone;
        if (absl::StatusOr<bool> enough = Enough(); !enough.ok() || *enough) return enough.status();
      }
    }
    return absl::OkStatus();
  }

  // Where it is the size that things go for, it is small enough.
  absl::StatusOr<bool> Enough() {
    if (!target_.has_value()) return false;
    absl::StatusOr<int64_t> bytes = rows_.UsedBytes();
    if (!bytes.ok()) return bytes.status();
    return *bytes <= *target_;
  }

  RetentionRows& rows_;
  const Retention& retention_;
  const std::function<bool()>& stopped_;
  Retained& retained_;
  std::optional<int64_t> target_;  // bytes; set while it is the size that things go for
};

}  // namespace

absl::Status RetainRows(RetentionRows& rows, const Retention& retention, const std::function<bool()>& stopped,
                        Retained& retained) {
  return Pass(rows, retention, stopped, retained).Run();
}

std::vector<ArtifactFile> ArtifactsToRemove(const std::vector<ArtifactFile>& all,
                                            const std::vector<std::string>& served, const Retention& retention,
                                            const std::function<bool()>& stopped) {
  int64_t left = 0;
  for (const ArtifactFile& file : all) left += file.bytes;
  const int64_t limit = retention.artifact_bytes;
  const bool too_large = limit > 0 && left > limit;
  const int64_t target = limit - limit / 10;
  std::vector<ArtifactFile> removed;
  for (const ArtifactFile& file : all) {
    const absl::Duration age = retention.now - file.used;
    if (age <= retention.grace || stopped()) break;  // the others are younger
    if (age <= retention.artifact_age && !(too_large && left > target)) break;
    if (std::binary_search(served.begin(), served.end(), file.sha256)) continue;
    left -= file.bytes;
    removed.push_back(file);
  }
  return removed;
}

}  // namespace attune::store
