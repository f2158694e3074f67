// The rows of the jobs' table, and what is read of them. What each function promises is said in queue.h.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_JOBS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_JOBS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/postgresql/connection.h"
#include "server/store/queue.h"

namespace attune::store::postgresql {

struct JobRow {
  int64_t id = 0;
  Job job;
  absl::Time now;  // the database's, when it was read
};

// Of a SELECT from jobs, or a RETURNING.
inline constexpr absl::string_view kJobColumns =
    " jobs.id, jobs.name, kind, request, request_id, operation, identity, holder, epoch,"
    " (extract(epoch FROM lease_until) * 1000000)::bigint, cancelled,"
    " (SELECT parent.name FROM jobs AS parent WHERE parent.id = jobs.parent_id),"
    " (extract(epoch FROM statement_timestamp()) * 1000000)::bigint, home, device_class, priority, lost_by ";

enum class RowLock { kNone, kShare, kUpdate };

// Of the row stepped to.
absl::StatusOr<JobRow> ReadJob(const Rows& row);

// The one with `value` for the condition's $1, locked until the transaction ends.
template <typename Value>
absl::StatusOr<std::optional<JobRow>> FindJob(Connection& connection, absl::string_view condition, const Value& value,
                                              RowLock lock) {
  constexpr absl::string_view kLocks[] = {"", " FOR SHARE", " FOR UPDATE"};
  absl::StatusOr<Rows> rows = connection.Query(
      absl::StrCat("SELECT", kJobColumns, "FROM jobs WHERE ", condition, kLocks[static_cast<int>(lock)]), value);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return std::nullopt;
  return ReadJob(*rows);
}
// NotFound when there is none.
absl::StatusOr<JobRow> NamedJob(Connection& connection, absl::string_view name, RowLock lock);

absl::StatusOr<std::vector<std::string>> LeasableJobs(Connection& connection, absl::string_view holder);
// All that are leased; `holder`: by it alone, unless it is empty.
absl::StatusOr<std::vector<LeasedJob>> LeasedJobs(Connection& connection, absl::string_view holder);
// Of a SELECT or RETURNING of kHeldColumns.
inline constexpr absl::string_view kHeldColumns = " name, holder, epoch, cancelled ";
std::vector<LeasedJob> ReadHeld(Rows rows);
absl::StatusOr<Page<v1::Operation>> ListJobs(Connection& connection, const JobFilter& filter, int page_size,
                                             absl::string_view page_token);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_JOBS_H_
