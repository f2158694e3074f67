#include "server/store/postgresql/create_job.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "server/store/lease_rules.h"
#include "server/store/postgresql/jobs.h"
#include "server/store/postgresql/sql.h"
#include "server/store/rows/names.h"

namespace attune::store::postgresql {
namespace {

std::optional<std::string> TextOrNull(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<Blob> BlobOrNull(const std::string& bytes) {
  if (bytes.empty()) return std::nullopt;
  return Blob{bytes};
}

// The job that was given the request_id; AlreadyExists when that was for something else.
absl::StatusOr<std::optional<Job>> FindRequested(Connection& connection, const Job& wanted, const JoinTerms& terms) {
  if (wanted.request_id.empty()) return std::nullopt;
  absl::StatusOr<Rows> given =
      connection.Query("SELECT job_id, identity FROM job_request_ids WHERE request_id = $1", wanted.request_id);
  if (!given.ok()) return given.status();
  if (!*given->Step()) return std::nullopt;
  absl::StatusOr<std::optional<JobRow>> row = FindJob(connection, "jobs.id = $1", given->Int(0), RowLock::kNone);
  if (!row.ok()) return row.status();
  if (!row->has_value()) return std::nullopt;
  absl::Status same = CheckSameRequest(wanted, terms, (*row)->job, given->Bytes(1));
  if (!same.ok()) return same;
  return std::move((*row)->job);
}

// Locked, so that it does not end before it is joined.
absl::StatusOr<std::optional<JobRow>> FindIdentical(Connection& connection, const Job& wanted, const JoinTerms& terms) {
  for (const JoinTerms::Same& same : AllTheSame(wanted, terms)) {
    const absl::StatusOr<std::optional<int64_t>> id =
        Sql("SELECT id FROM jobs WHERE NOT done AND identity = ? AND home = ? FOR SHARE", Blob{same.identity},
            wanted.home)
            .FindInt(connection);
    if (!id.ok()) return id.status();
    if (id->has_value()) return FindJob(connection, "jobs.id = $1", **id, RowLock::kShare);
  }
  return std::nullopt;
}

absl::Status KeepRequestId(Connection& connection, const Job& wanted, int64_t job_id) {
  if (wanted.request_id.empty()) return absl::OkStatus();
  return connection.Execute("INSERT INTO job_request_ids (request_id, job_id, identity) VALUES ($1, $2, $3)",
                            wanted.request_id, job_id, BlobOrNull(wanted.identity));
}

// Where there is a limit, those who make jobs go one after the other: each must see what the one before has made.
absl::Status CheckRoom(Connection& connection, size_t most, absl::string_view home) {
  if (most == std::numeric_limits<size_t>::max()) return absl::OkStatus();
  absl::Status locked = connection.Execute("SELECT pg_advisory_xact_lock(1635087471, hashtext(current_schema()))");
  if (!locked.ok()) return locked;
  absl::StatusOr<Rows> count =
      connection.Query("SELECT count(*) FROM jobs WHERE NOT done AND parent_id IS NULL AND home = $1", home);
  if (!count.ok()) return count.status();
  return CheckUnfinished(*count->Step() ? static_cast<size_t>(count->Int(0)) : 0, most);
}

absl::Status Insert(Connection& connection, const Job& job, std::optional<int64_t> parent) {
  const std::string operation = job.operation.SerializeAsString();
  absl::StatusOr<Rows> made = connection.Query(
      "INSERT INTO jobs (name, parent_id, kind, request, request_id, identity, problem, done, cancelled, operation,"
      " end_ns, home, device_class, priority)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::bigint) RETURNING id",
      job.name, parent, static_cast<int>(job.kind), Blob{job.request}, TextOrNull(job.request_id),
      BlobOrNull(job.identity), TextOrNull(job.operation.problem()), job.operation.done(), job.cancelled,
      Blob{operation}, EndOf(job.operation), job.home, TextOrNull(job.device_class), job.priority);
  if (!made.ok()) return made.status();
  if (!*made->Step()) return absl::InternalError("a new job has no row");
  return KeepRequestId(connection, job, made->Int(0));
}

}  // namespace

absl::StatusOr<Job> CreateJob(Connection& connection, Job job, const JoinTerms& terms, absl::string_view home) {
  if (absl::Status status = CheckNewJob(job); !status.ok()) return status;
  if (job.home.empty() && job.device_class.empty()) job.home = std::string(home);
  absl::StatusOr<std::optional<Job>> requested = FindRequested(connection, job, terms);
  if (!requested.ok()) return requested.status();
  if (requested->has_value()) return **std::move(requested);
  absl::StatusOr<std::optional<JobRow>> identical = FindIdentical(connection, job, terms);
  if (!identical.ok()) return identical.status();
  if (identical->has_value()) {
    if (absl::Status status = KeepRequestId(connection, job, (*identical)->id); !status.ok()) return status;
    return std::move((*identical)->job);
  }
  absl::StatusOr<std::optional<JobRow>> named = FindJob(connection, "name = $1", job.name, RowLock::kNone);
  if (!named.ok()) return named.status();
  if (named->has_value()) return SameJobOrTaken(job, (*named)->job);
  if (absl::Status status = CheckRoom(connection, terms.most_unfinished, job.home); !status.ok()) return status;
  std::optional<int64_t> parent;
  if (!job.parent.empty()) {
    // Locked: its end, or its cancellation, comes before this part or sees it.
    const absl::StatusOr<JobRow> row = NamedJob(connection, job.parent, RowLock::kShare);
    if (!row.ok()) return row.status();
    job.cancelled = EndsItsParts(row->job);
    parent = row->id;
  }
  if (absl::Status status = Insert(connection, job, parent); !status.ok()) return status;
  return job;
}

}  // namespace attune::store::postgresql
