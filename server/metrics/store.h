// The store: commits, whether it can write, what it takes on disk, trials that it has, retention and backups.
#ifndef ATTUNE_SERVER_METRICS_STORE_H_
#define ATTUNE_SERVER_METRICS_STORE_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "attune/v1/trial.pb.h"
#include "server/metrics/families.h"
#include "server/metrics/registered.h"
#include "server/metrics/source.h"

namespace attune::metrics {

// What is known without waiting for the writer.
struct WriterState {
  size_t waiting = 0;    // writes, for the next commit
  bool writable = true;  // the last write did not fail for the disk's sake
};

// As somebody found it who may wait for the disk.
struct StoreFiles {
  int64_t database_bytes = 0;
  int64_t free_bytes = 0;  // of the file system, for the daemon's user
  int64_t filesystem_bytes = 0;
  std::optional<absl::Time> newest_backup = {};
  int64_t newest_backup_bytes = 0;
};

struct Removed {
  int64_t trials = 0;
  int64_t jobs = 0;
  int64_t retimings = 0;
  int64_t compiles = 0;
  int64_t artifacts = 0;
};

// Thread-safe.
class Store {
 public:
  explicit Store(prometheus::Registry& registry);

  // One group of `writes`, of which `failed` did for the disk's sake.
  void Committed(size_t writes, size_t failed, absl::Duration time);
  // The families that trials are told by; those of others are "other".
  void SetFamilies(std::set<std::string> names);
  void Recorded(const v1::Trial& trial);
  // Nothing: it could not be kept to its limits.
  void Retained(const std::optional<Removed>& removed, int64_t artifact_bytes, absl::Time now);
  void SetFiles(const StoreFiles& files);

  Source<WriterState>& writer() { return writer_; }
  void Collect(Families& families) const;

 private:
  prometheus::Histogram& commits_;
  prometheus::Counter& writes_;
  prometheus::Counter& failed_;
  CounterFamily& trials_;
  CounterFamily& retentions_;
  CounterFamily& removed_;
  GaugeFamily& retained_;
  GaugeFamily& artifact_bytes_;
  GaugeFamily& database_bytes_;
  GaugeFamily& free_bytes_;
  GaugeFamily& filesystem_bytes_;
  GaugeFamily& backup_;
  GaugeFamily& backup_bytes_;
  Source<WriterState> writer_;
  std::mutex mutex_;
  std::set<std::string> families_;  // guarded by mutex_
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_STORE_H_
