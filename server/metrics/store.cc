#include "server/metrics/store.h"

#include <utility>

#include "server/metrics/words.h"

namespace attune::metrics {
namespace {

using prometheus::MetricType;

double SecondsOf(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

}  // namespace

Store::Store(prometheus::Registry& registry)
    : commits_(HistogramsOf(registry, "attune_store_commit_seconds",
                            "How long commits of the store took, each of the writes that had come by then.")
                   .Add({}, prometheus::Histogram::BucketBoundaries{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                                    0.1, 0.25, 0.5, 1, 2.5, 10})),
      writes_(CountersOf(registry, "attune_store_writes_total", "Writes that a commit was tried for.").Add({})),
      failed_(CountersOf(registry, "attune_store_write_failures_total",
                         "Writes that failed for the disk's or the database's sake, not for their own.")
                  .Add({})),
      trials_(CountersOf(registry, "attune_trials_total", "Trials stored, by verdict and kernel family.")),
      retentions_(CountersOf(registry, "attune_retention_runs_total",
                             "How often the store was brought within its limits, by what came of it.")),
      removed_(CountersOf(registry, "attune_retention_removed_total", "What that has removed.")),
      retained_(GaugesOf(registry, "attune_retention_last_success_timestamp_seconds",
                         "When the store was last brought within its limits.")),
      artifact_bytes_(
          GaugesOf(registry, "attune_store_artifact_bytes", "Compiled code on disk, as the last retention found it.")),
      database_bytes_(GaugesOf(registry, "attune_store_database_bytes", "The database's files, its log among them.")),
      free_bytes_(GaugesOf(registry, "attune_store_free_bytes",
                           "What the file system of the store has left for the daemon's user.")),
      filesystem_bytes_(GaugesOf(registry, "attune_store_filesystem_bytes", "The size of that file system.")),
      backup_(GaugesOf(registry, "attune_backup_last_timestamp_seconds", "When the newest backup was made.")),
      backup_bytes_(GaugesOf(registry, "attune_backup_last_bytes", "The newest backup's size.")) {
  for (const char* result : {"ok", "failed"}) retentions_.Add({{"result", result}});
}

void Store::Committed(size_t writes, size_t failed, absl::Duration time) {
  commits_.Observe(absl::ToDoubleSeconds(time));
  writes_.Increment(static_cast<double>(writes));
  failed_.Increment(static_cast<double>(failed));
}

void Store::SetFamilies(std::set<std::string> names) {
  for (const std::string& name : names) trials_.Add({{"verdict", "ok"}, {"family", name}});
  const std::lock_guard<std::mutex> lock(mutex_);
  families_ = std::move(names);
}

void Store::Recorded(const v1::Trial& trial) {
  std::string family = trial.variant().family();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!families_.contains(family)) family = "other";
  }
  trials_.Add({{"verdict", Word(v1::Verdict_Name(trial.verdict()), "VERDICT_")}, {"family", family}}).Increment();
}

void Store::Retained(const std::optional<Removed>& removed, int64_t artifact_bytes, absl::Time now) {
  retentions_.Add({{"result", removed.has_value() ? "ok" : "failed"}}).Increment();
  if (!removed.has_value()) return;
  retained_.Add({}).Set(SecondsOf(now));
  artifact_bytes_.Add({}).Set(static_cast<double>(artifact_bytes));
  for (const auto& [what, count] :
       {std::pair("trials", removed->trials), std::pair("jobs", removed->jobs),
        std::pair("retimings", removed->retimings), std::pair("failed_compiles", removed->compiles),
        std::pair("artifacts", removed->artifacts)}) {
    removed_.Add({{"what", what}}).Increment(static_cast<double>(count));
  }
}

void Store::SetFiles(const StoreFiles& files) {
  database_bytes_.Add({}).Set(static_cast<double>(files.database_bytes));
  free_bytes_.Add({}).Set(static_cast<double>(files.free_bytes));
  filesystem_bytes_.Add({}).Set(static_cast<double>(files.filesystem_bytes));
  if (!files.newest_backup.has_value()) return;
  backup_.Add({}).Set(SecondsOf(*files.newest_backup));
  backup_bytes_.Add({}).Set(static_cast<double>(files.newest_backup_bytes));
}

void Store::Collect(Families& families) const {
  const std::optional<WriterState> state = writer_.Get();
  if (!state.has_value()) return;
  auto waiting = MakeFamily("attune_store_writes_waiting", "Writes that wait for the next commit.", MetricType::Gauge);
  AddValue(waiting, {}, static_cast<double>(state->waiting));
  auto writable = MakeFamily("attune_store_writable",
                             "1; 0 since a write failed for the disk's sake, until one succeeds.", MetricType::Gauge);
  AddValue(writable, {}, state->writable ? 1 : 0);
  families.push_back(std::move(waiting));
  families.push_back(std::move(writable));
}

}  // namespace attune::metrics
