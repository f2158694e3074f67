// One pass over what a database has too much of: what goes, in which order, and when it is enough. Which rows may go at
// all is each database's to find out (retention.h has the rules).
#ifndef ATTUNE_SERVER_STORE_MAINTENANCE_RETENTION_PASS_H_
#define ATTUNE_SERVER_STORE_MAINTENANCE_RETENTION_PASS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/artifact_files.h"
#include "server/store/retention.h"

namespace attune::store {

// What goes together, and when it was last used: one job, one failed compile, one retiming, or the trials of a problem
// under dependencies.
struct RetentionUnit {
  enum Kind { kJob, kCompile, kTrials, kRetiming };
  int64_t used_ns = 0;
  Kind kind = kJob;
  int64_t id = 0;            // of the row; of kTrials the problem's
  int64_t dependencies = 0;  // of kTrials
};

// Rows that are removed at a time: a few milliseconds.
inline constexpr int kRetentionBatch = 200;

class RetentionRows {
 public:
  virtual ~RetentionRows() = default;

  // All that was last used before `latest` and may go, as far as that can be said of a unit; in any order.
  virtual absl::StatusOr<std::vector<RetentionUnit>> Units(absl::Time latest) = 0;
  // Units of one kind, not kTrials; how many of them have gone.
  virtual absl::StatusOr<int64_t> Remove(RetentionUnit::Kind kind, const std::vector<int64_t>& ids) = 0;
  // The next kRetentionBatch trials of a unit that may go, by id, after `after`.
  virtual absl::StatusOr<std::vector<int64_t>> TrialsToRemove(const RetentionUnit& unit, int64_t after) = 0;
  // Those of `ids` that may still go: since they were read, one may have become an incumbent's. How many have gone.
  virtual absl::StatusOr<int64_t> RemoveTrials(const RetentionUnit& unit, const std::vector<int64_t>& ids) = 0;
  virtual absl::StatusOr<int64_t> UsedBytes() = 0;
};

// Store::Retain of trials, jobs, retimings and failed compiles; adds to `retained`. Ends early, with OK, when `stopped`
// says so between two batches.
absl::Status RetainRows(RetentionRows& rows, const Retention& retention, const std::function<bool()>& stopped,
                        Retained& retained);

// Of `all` compiled code, least recently used first, what goes: nothing that `served`, sorted hashes, names. Takes no
// more once `stopped`.
std::vector<ArtifactFile> ArtifactsToRemove(const std::vector<ArtifactFile>& all,
                                            const std::vector<std::string>& served, const Retention& retention,
                                            const std::function<bool()>& stopped);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_MAINTENANCE_RETENTION_PASS_H_
