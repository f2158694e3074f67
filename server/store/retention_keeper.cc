#include "server/store/retention_keeper.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/base/log.h"

namespace attune::store {

RetentionKeeper::RetentionKeeper(Store* store, Retention limits, absl::Duration period, metrics::Store* metrics)
    : store_(store), metrics_(metrics), limits_(std::move(limits)) {
  if (limits_.limits_anything()) thread_ = std::thread([this, period] { Run(period); });
}

RetentionKeeper::~RetentionKeeper() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void RetentionKeeper::Run(absl::Duration period) {
  while (!ending_) {
    Retain();
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait_for(lock, absl::ToChronoNanoseconds(period), [this] { return ending_.load(); });
  }
}

void RetentionKeeper::Retain() {
  limits_.now = absl::Now();
  const absl::StatusOr<Retained> retained = store_->Retain(limits_, [this] { return ending_.load(); });
  Count(retained);
  if (retained.ok()) {
    Report(*retained);
  } else {
    LogWarning("the store could not be kept to its limits", {{"reason", retained.status().message()}});
  }
}

void RetentionKeeper::Count(const absl::StatusOr<Retained>& retained) {
  if (metrics_ == nullptr) return;
  if (!retained.ok()) return metrics_->Retained(std::nullopt, 0, limits_.now);
  metrics_->Retained(metrics::Removed{.trials = retained->removed_trials,
                                      .jobs = retained->removed_jobs,
                                      .retimings = retained->removed_retimings,
                                      .compiles = retained->removed_compiles,
                                      .artifacts = retained->removed_artifacts},
                     retained->artifact_bytes, limits_.now);
}

void RetentionKeeper::Report(const Retained& retained) {
  if (retained.removed_trials + retained.removed_jobs + retained.removed_retimings + retained.removed_compiles +
          retained.removed_artifacts >
      0) {
    LogInfo("removed from the store what was used least recently", {{"trials", retained.removed_trials},
                                                                    {"jobs", retained.removed_jobs},
                                                                    {"retimings", retained.removed_retimings},
                                                                    {"failed_compiles", retained.removed_compiles},
                                                                    {"artifacts", retained.removed_artifacts}});
  }
  const bool too_large = (limits_.database_bytes > 0 && retained.database_bytes > limits_.database_bytes) ||
                         (limits_.artifact_bytes > 0 && retained.artifact_bytes > limits_.artifact_bytes);
  if (too_large && !too_large_ && !ending_) {
    LogWarning("the store is larger than its limits: all that is left must stay",
               {{"database_bytes", retained.database_bytes},
                {"database_limit", limits_.database_bytes},
                {"artifact_bytes", retained.artifact_bytes},
                {"artifact_limit", limits_.artifact_bytes}});
  }
  too_large_ = too_large;
}

}  // namespace attune::store
