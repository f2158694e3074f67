#include "server/store/postgresql/queue.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/store/hosts.h"
#include "server/store/lease_rules.h"
#include "server/store/postgresql/create_job.h"
#include "server/store/postgresql/job_writes.h"
#include "server/store/postgresql/jobs.h"
#include "server/store/postgresql/migrations.h"
#include "server/store/postgresql/sql.h"
#include "server/store/rows/names.h"

namespace attune::store::postgresql {
namespace {

constexpr absl::string_view kNewLease =
    " holder = $1, epoch = epoch + 1, lease_until = statement_timestamp() + $2 * interval '1 microsecond' ";
constexpr absl::string_view kHeld = " name = $1 AND epoch = $2 AND holder IS NOT NULL AND NOT done ";

// A holder that lost it counts, unless the claimer is that itself, or the server was down when it would have renewed.
constexpr absl::string_view kLostBy =
    " lost_by = CASE WHEN holder = $1 OR pg_postmaster_start_time() > lease_until - $2 * interval '1 microsecond'"
    " THEN lost_by ELSE concat_ws(',', nullif(lost_by, ''), holder) END ";

// `which` gives the id of one, and skips what another claim has in its hands.
std::string ClaimSql(absl::string_view also, absl::string_view which) {
  return absl::StrCat("WITH claimed AS (UPDATE jobs SET", kNewLease, also, "WHERE id = (", which, ") RETURNING",
                      kJobColumns, "), forgotten AS (DELETE FROM job_writes USING claimed WHERE job_id = claimed.id)",
                      " SELECT * FROM claimed");
}

// Why a write under the fence found no row.
absl::Status WhyNotHeld(Connection& connection, const Fence& fence) {
  const absl::StatusOr<JobRow> row = NamedJob(connection, fence.job, RowLock::kNone);
  return row.ok() ? StaleError(fence, row->job) : row.status();
}

absl::StatusOr<JobRow> TakeLease(Connection& connection, int64_t id, absl::string_view holder,
                                 absl::Duration duration) {
  absl::StatusOr<Rows> leased =
      connection.Query(absl::StrCat("UPDATE jobs SET", kNewLease, "WHERE id = $3 RETURNING", kJobColumns), holder,
                       absl::ToInt64Microseconds(duration), id);
  if (!leased.ok()) return leased.status();
  if (!*leased->Step()) return absl::InternalError("a job that was locked is gone");
  if (absl::Status status = ForgetWrites(connection, id); !status.ok()) return status;
  return ReadJob(*leased);
}

absl::Status CancelParts(Connection& connection, int64_t parent) {
  return connection.Execute("UPDATE jobs SET cancelled = true WHERE parent_id = $1 AND NOT done", parent);
}

absl::Status FinishJob(Connection& connection, const Fence& fence, const v1::Operation& operation) {
  const absl::StatusOr<JobRow> row = NamedJob(connection, fence.job, RowLock::kUpdate);
  if (!row.ok()) return row.status();
  if (EndedUnder(fence, row->job)) return absl::OkStatus();
  if (absl::Status status = CheckHeld(fence, row->job); !status.ok()) return status;
  const std::string message = operation.SerializeAsString();
  absl::Status kept = connection.Execute("UPDATE jobs SET operation = $1, done = true, end_ns = $2 WHERE id = $3",
                                         Blob{message}, EndOf(operation), row->id);
  if (!kept.ok()) return kept;
  if (absl::Status status = CancelParts(connection, row->id); !status.ok()) return status;
  return ForgetWrites(connection, row->id);
}

absl::Status RequeueJob(Connection& connection, const Fence& fence) {
  const absl::StatusOr<JobRow> row = NamedJob(connection, fence.job, RowLock::kUpdate);
  if (!row.ok()) return row.status();
  if (GivenBackUnder(fence, row->job)) return absl::OkStatus();
  if (absl::Status status = CheckHeld(fence, row->job); !status.ok()) return status;
  absl::Status given = connection.Execute("UPDATE jobs SET holder = NULL WHERE id = $1", row->id);
  if (!given.ok()) return given;
  return ForgetWrites(connection, row->id);
}

absl::StatusOr<Job> CancelJob(Connection& connection, absl::string_view name) {
  absl::StatusOr<JobRow> row = NamedJob(connection, name, RowLock::kUpdate);
  if (!row.ok()) return row.status();
  if (row->job.operation.done()) return std::move(row->job);
  absl::Status status = connection.Execute("UPDATE jobs SET cancelled = true WHERE id = $1", row->id);
  if (!status.ok()) return status;
  if (status = CancelParts(connection, row->id); !status.ok()) return status;
  row->job.cancelled = true;
  return std::move(row->job);
}

}  // namespace

std::string ClaimLeftSql() {
  return ClaimSql(absl::StrCat(",", kLostBy),
                  "SELECT id FROM jobs WHERE NOT done AND holder IS NOT NULL AND lease_until <= statement_timestamp()"
                  " AND (device_class, priority) IN (SELECT * FROM unnest($3::text[], $4::bigint[]))"
                  " ORDER BY id LIMIT 1 FOR UPDATE OF jobs SKIP LOCKED");
}

std::string ClaimQueuedSql() {
  return ClaimSql(
      "",
      absl::StrCat("SELECT waiting.id FROM unnest($3::text[], $4::bigint[]) AS room(device_class, priority)"
                   " CROSS JOIN LATERAL (SELECT id, jobs.priority FROM jobs WHERE NOT done AND holder IS NULL"
                   " AND jobs.device_class = room.device_class AND jobs.priority = room.priority"
                   " AND (home = '' OR home = $1 OR NOT EXISTS (SELECT 1 FROM hosts WHERE hosts.name = 'hosts/' || home"
                   " AND NOT stopped AND NOT draining AND seen > statement_timestamp() - interval '",
                   absl::ToInt64Seconds(kHostTtl),
                   " seconds')) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) AS waiting"
                   " ORDER BY waiting.priority, waiting.id LIMIT 1"));
}

absl::StatusOr<std::unique_ptr<PostgresqlQueue>> PostgresqlQueue::Open(PoolSettings settings) {
  auto pool = std::make_shared<Pool>(std::move(settings));
  if (absl::Status status = Migrate(*pool, Migrations()); !status.ok()) return status;
  return std::make_unique<PostgresqlQueue>(std::move(pool));
}

absl::StatusOr<std::optional<Job>> PostgresqlQueue::Claim(absl::string_view holder, const std::vector<Room>& rooms,
                                                          absl::Duration duration) {
  if (rooms.empty()) return std::nullopt;
  std::vector<std::string> classes;
  std::vector<int64_t> priorities;
  for (const Room& room : rooms) {
    classes.push_back(room.device_class);
    priorities.push_back(room.priority);
  }
  return pool_->DoAndReturn<std::optional<Job>>([&](Connection& connection) -> absl::StatusOr<std::optional<Job>> {
    for (const std::string& sql : {ClaimLeftSql(), ClaimQueuedSql()}) {
      absl::StatusOr<Rows> claimed =
          connection.Query(sql, holder, absl::ToInt64Microseconds(duration), ArrayOf(classes), ArrayOf(priorities));
      if (!claimed.ok()) return claimed.status();
      if (!*claimed->Step()) continue;
      absl::StatusOr<JobRow> row = ReadJob(*claimed);
      if (!row.ok()) return row.status();
      return std::move(row->job);
    }
    return std::nullopt;
  });
}

absl::StatusOr<std::vector<LeasedJob>> PostgresqlQueue::RenewAll(absl::string_view holder, absl::Duration duration) {
  return pool_->DoAndReturn<std::vector<LeasedJob>>(
      [&](Connection& connection) -> absl::StatusOr<std::vector<LeasedJob>> {
        absl::StatusOr<Rows> renewed = connection.Query(
            absl::StrCat("UPDATE jobs SET lease_until = statement_timestamp() + $2 * interval '1 microsecond'"
                         " WHERE NOT done AND holder IS NOT NULL AND holder = $1 RETURNING",
                         kHeldColumns),
            holder, absl::ToInt64Microseconds(duration));
        if (!renewed.ok()) return renewed.status();
        std::vector<LeasedJob> held = ReadHeld(*std::move(renewed));
        std::sort(held.begin(), held.end(), [](const LeasedJob& a, const LeasedJob& b) { return a.name < b.name; });
        return held;
      });
}

absl::StatusOr<std::vector<LeasedJob>> PostgresqlQueue::Held() {
  return pool_->DoAndReturn<std::vector<LeasedJob>>([](Connection& connection) { return LeasedJobs(connection, ""); });
}

absl::StatusOr<Job> PostgresqlQueue::Create(const Job& job, const JoinTerms& terms) {
  return pool_->TransactAndReturn<Job>(
      [&](Connection& connection) { return CreateJob(connection, job, terms, home_); });
}

absl::Status PostgresqlQueue::Identify(absl::string_view name, absl::string_view identity) {
  return pool_->Transact([&](Connection& connection) -> absl::Status {
    const absl::StatusOr<JobRow> row = NamedJob(connection, name, RowLock::kUpdate);
    if (!row.ok()) return row.status();
    return connection.Execute(
        "UPDATE jobs SET identity = $1 WHERE id = $2 AND identity IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM jobs AS other WHERE NOT other.done AND other.identity = $1 AND other.home = jobs.home)",
        Blob{identity}, row->id);
  });
}

absl::StatusOr<std::optional<Job>> PostgresqlQueue::Lease(absl::string_view name, absl::string_view holder,
                                                          absl::Duration duration) {
  return pool_->TransactAndReturn<std::optional<Job>>(
      [&](Connection& connection) -> absl::StatusOr<std::optional<Job>> {
        const absl::StatusOr<JobRow> row = NamedJob(connection, name, RowLock::kUpdate);
        if (!row.ok()) return row.status();
        if (!CanLease(row->job, holder, row->now)) return std::nullopt;
        absl::StatusOr<JobRow> leased = TakeLease(connection, row->id, holder, duration);
        if (!leased.ok()) return leased.status();
        return std::move(leased->job);
      });
}

absl::StatusOr<Job> PostgresqlQueue::Renew(const Fence& fence, absl::Duration duration) {
  return pool_->DoAndReturn<Job>([&](Connection& connection) -> absl::StatusOr<Job> {
    absl::StatusOr<Rows> renewed = connection.Query(
        absl::StrCat("UPDATE jobs SET lease_until = statement_timestamp() + $3 * interval '1 microsecond' WHERE", kHeld,
                     "RETURNING", kJobColumns),
        fence.job, fence.epoch, absl::ToInt64Microseconds(duration));
    if (!renewed.ok()) return renewed.status();
    if (!*renewed->Step()) return WhyNotHeld(connection, fence);
    absl::StatusOr<JobRow> row = ReadJob(*renewed);
    if (!row.ok()) return row.status();
    return std::move(row->job);
  });
}

absl::Status PostgresqlQueue::Update(const Fence& fence, const v1::Operation& operation) {
  if (absl::Status status = CheckUpdate(operation); !status.ok()) return status;
  const std::string message = operation.SerializeAsString();
  return pool_->Do([&](Connection& connection) -> absl::Status {
    const absl::StatusOr<Rows> kept = connection.Query(absl::StrCat("UPDATE jobs SET operation = $3 WHERE", kHeld),
                                                       fence.job, fence.epoch, Blob{message});
    if (!kept.ok()) return kept.status();
    return kept->changed() > 0 ? absl::OkStatus() : WhyNotHeld(connection, fence);
  });
}

absl::Status PostgresqlQueue::Finish(const Fence& fence, const v1::Operation& operation) {
  if (absl::Status status = CheckEnd(operation); !status.ok()) return status;
  return pool_->Transact([&](Connection& connection) { return FinishJob(connection, fence, operation); });
}

absl::Status PostgresqlQueue::Requeue(const Fence& fence) {
  return pool_->Transact([&](Connection& connection) { return RequeueJob(connection, fence); });
}

absl::StatusOr<Job> PostgresqlQueue::Cancel(absl::string_view name) {
  return pool_->TransactAndReturn<Job>([&](Connection& connection) { return CancelJob(connection, name); });
}

absl::StatusOr<Job> PostgresqlQueue::Get(absl::string_view name) {
  return pool_->DoAndReturn<Job>([&](Connection& connection) -> absl::StatusOr<Job> {
    absl::StatusOr<JobRow> row = NamedJob(connection, name, RowLock::kNone);
    if (!row.ok()) return row.status();
    return std::move(row->job);
  });
}

absl::StatusOr<std::vector<std::string>> PostgresqlQueue::Leasable(absl::string_view holder) {
  return pool_->DoAndReturn<std::vector<std::string>>(
      [&](Connection& connection) { return LeasableJobs(connection, holder); });
}

absl::StatusOr<Page<v1::Operation>> PostgresqlQueue::List(const JobFilter& filter, int page_size,
                                                          absl::string_view page_token) {
  return pool_->DoAndReturn<Page<v1::Operation>>(
      [&](Connection& connection) { return ListJobs(connection, filter, page_size, page_token); });
}

}  // namespace attune::store::postgresql
