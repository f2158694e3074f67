// The rows of the jobs' table, and what is read of them. What each function promises is said in queue.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_JOBS_H_
#define ATTUNE_SERVER_STORE_SQLITE_JOBS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/queue.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

struct JobRow {
  int64_t id = 0;
  Job job;
};

// The first with `value` in the condition's place.
absl::StatusOr<std::optional<JobRow>> FindJob(Connection& connection, absl::string_view condition,
                                              absl::string_view value);

absl::StatusOr<Job> GetJob(Connection& connection, absl::string_view name);
absl::StatusOr<std::vector<std::string>> LeasableJobs(Connection& connection, absl::string_view holder, absl::Time now);
// All that are leased; `holder`: by it alone, unless it is empty.
absl::StatusOr<std::vector<LeasedJob>> LeasedJobs(Connection& connection, absl::string_view holder);
absl::StatusOr<Page<v1::Operation>> ListJobs(Connection& connection, const JobFilter& filter, int page_size,
                                             absl::string_view page_token);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_JOBS_H_
