#include "server/store/sqlite/queue.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/store/lease_rules.h"
#include "server/store/sqlite/job_writes.h"
#include "server/store/sqlite/jobs.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {
namespace {

std::optional<absl::string_view> NullIfEmpty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

// The job that was given the request_id; AlreadyExists when that was for something else.
absl::StatusOr<std::optional<Job>> FindRequested(Connection& connection, const Job& wanted, const JoinTerms& terms) {
  if (wanted.request_id.empty()) return std::nullopt;
  absl::StatusOr<std::optional<JobRow>> row =
      FindJob(connection, "id = (SELECT job_id FROM job_request_ids WHERE request_id = ?)", wanted.request_id);
  if (!row.ok()) return row.status();
  if (!row->has_value()) return std::nullopt;
  Statement select(connection, "SELECT identity FROM job_request_ids WHERE request_id = ?");
  absl::StatusOr<bool> found = select.Bind(wanted.request_id).Step();
  if (!found.ok()) return found.status();
  absl::Status same = CheckSameRequest(wanted, terms, (*row)->job, select.Text(0));
  if (!same.ok()) return same;
  return std::move((*row)->job);
}

absl::StatusOr<std::optional<JobRow>> FindIdentical(Connection& connection, const Job& wanted, const JoinTerms& terms) {
  for (const JoinTerms::Same& same : AllTheSame(wanted, terms)) {
    absl::StatusOr<std::optional<JobRow>> row = FindJob(connection, "done = 0 AND identity = ?", same.identity);
    if (!row.ok() || row->has_value()) return row;
  }
  return std::nullopt;
}

absl::Status KeepRequestId(Connection& connection, const Job& wanted, int64_t job_id) {
  if (wanted.request_id.empty()) return absl::OkStatus();
  return Statement(connection, "INSERT INTO job_request_ids (request_id, job_id, identity) VALUES (?, ?, ?)")
      .Bind(wanted.request_id, job_id, NullIfEmpty(wanted.identity))
      .Run();
}

absl::Status CheckRoom(Connection& connection, size_t most) {
  const absl::StatusOr<std::optional<int64_t>> count =
      Statement(connection, "SELECT count(*) FROM jobs WHERE done = 0 AND parent IS NULL").FindInt();
  if (!count.ok()) return count.status();
  return CheckUnfinished(static_cast<size_t>(count->value_or(0)), most);
}

absl::Status Insert(Connection& connection, const Job& job) {
  std::optional<int64_t> problem;
  if (!job.operation.problem().empty()) {
    absl::StatusOr<int64_t> interned = InternProblem(connection, job.operation.problem());
    if (!interned.ok()) return interned.status();
    problem = *interned;
  }
  const std::string operation = job.operation.SerializeAsString();
  absl::Status status = Statement(connection,
                                  "INSERT INTO jobs (name, kind, request, request_id, done, operation, problem_id,"
                                  " end_ns, identity, parent, cancelled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                            .Bind(job.name, static_cast<int>(job.kind), Blob{job.request}, NullIfEmpty(job.request_id),
                                  job.operation.done() ? 1 : 0, Blob{operation}, problem, EndOf(job.operation),
                                  NullIfEmpty(job.identity), NullIfEmpty(job.parent), job.cancelled ? 1 : 0)
                            .Run();
  if (!status.ok()) return status;
  return KeepRequestId(connection, job, connection.LastInsertId());
}

absl::StatusOr<JobRow> NamedRow(Connection& connection, absl::string_view name) {
  absl::StatusOr<std::optional<JobRow>> row = FindJob(connection, "name = ?", name);
  if (!row.ok()) return row.status();
  if (!row->has_value()) return NoJob(name);
  return **std::move(row);
}

absl::StatusOr<Job> CreateJob(Connection& connection, Job job, const JoinTerms& terms) {
  if (absl::Status status = CheckNewJob(job); !status.ok()) return status;
  absl::StatusOr<std::optional<Job>> requested = FindRequested(connection, job, terms);
  if (!requested.ok()) return requested.status();
  if (requested->has_value()) return **std::move(requested);
  absl::StatusOr<std::optional<JobRow>> identical = FindIdentical(connection, job, terms);
  if (!identical.ok()) return identical.status();
  if (identical->has_value()) {
    if (absl::Status status = KeepRequestId(connection, job, (*identical)->id); !status.ok()) return status;
    return std::move((*identical)->job);
  }
  absl::StatusOr<std::optional<JobRow>> named = FindJob(connection, "name = ?", job.name);
  if (!named.ok()) return named.status();
  if (named->has_value()) return SameJobOrTaken(job, (*named)->job);
  if (absl::Status status = CheckRoom(connection, terms.most_unfinished); !status.ok()) return status;
  if (!job.parent.empty()) {
    const absl::StatusOr<JobRow> parent = NamedRow(connection, job.parent);
    if (!parent.ok()) return parent.status();
    job.cancelled = EndsItsParts(parent->job);
  }
  if (absl::Status status = Insert(connection, job); !status.ok()) return status;
  return job;
}

absl::Status IdentifyJob(Connection& connection, absl::string_view name, absl::string_view identity) {
  const absl::StatusOr<JobRow> row = NamedRow(connection, name);
  if (!row.ok()) return row.status();
  return Statement(connection,
                   "UPDATE jobs SET identity = ? WHERE id = ? AND identity IS NULL AND NOT EXISTS"
                   " (SELECT 1 FROM jobs AS other WHERE other.done = 0 AND other.identity = ?)")
      .Bind(identity, row->id, identity)
      .Run();
}

absl::StatusOr<Job> LeaseJob(Connection& connection, JobRow row, absl::string_view holder, absl::Time until) {
  row.job.holder = std::string(holder);
  ++row.job.epoch;
  row.job.leased_until = until;
  absl::Status status = Statement(connection, "UPDATE jobs SET holder = ?, epoch = ?, lease_until_ns = ? WHERE id = ?")
                            .Bind(row.job.holder, row.job.epoch, absl::ToUnixNanos(until), row.id)
                            .Run();
  if (!status.ok()) return status;
  if (status = ForgetWrites(connection, row.id); !status.ok()) return status;
  return std::move(row.job);
}

// Of a job that the fence still holds.
absl::StatusOr<JobRow> HeldRow(Connection& connection, const Fence& fence) {
  absl::StatusOr<JobRow> row = NamedRow(connection, fence.job);
  if (!row.ok()) return row;
  if (absl::Status status = CheckHeld(fence, row->job); !status.ok()) return status;
  return row;
}

absl::Status KeepOperation(Connection& connection, int64_t id, const v1::Operation& operation) {
  const std::string message = operation.SerializeAsString();
  return Statement(connection, "UPDATE jobs SET operation = ?, done = ?, end_ns = ? WHERE id = ?")
      .Bind(Blob{message}, operation.done() ? 1 : 0, EndOf(operation), id)
      .Run();
}

absl::Status CancelParts(Connection& connection, const std::string& parent) {
  return Statement(connection, "UPDATE jobs SET cancelled = 1 WHERE parent = ? AND done = 0").Bind(parent).Run();
}

absl::Status FinishJob(Connection& connection, const Fence& fence, const v1::Operation& operation) {
  absl::StatusOr<JobRow> row = NamedRow(connection, fence.job);
  if (!row.ok()) return row.status();
  if (EndedUnder(fence, row->job)) return absl::OkStatus();
  if (absl::Status status = CheckHeld(fence, row->job); !status.ok()) return status;
  if (absl::Status status = KeepOperation(connection, row->id, operation); !status.ok()) return status;
  if (absl::Status status = CancelParts(connection, fence.job); !status.ok()) return status;
  return ForgetWrites(connection, row->id);
}

absl::Status RequeueJob(Connection& connection, const Fence& fence) {
  absl::StatusOr<JobRow> row = NamedRow(connection, fence.job);
  if (!row.ok()) return row.status();
  if (GivenBackUnder(fence, row->job)) return absl::OkStatus();
  if (absl::Status status = CheckHeld(fence, row->job); !status.ok()) return status;
  absl::Status status = Statement(connection, "UPDATE jobs SET holder = NULL WHERE id = ?").Bind(row->id).Run();
  if (!status.ok()) return status;
  return ForgetWrites(connection, row->id);
}

}  // namespace

absl::StatusOr<Job> SqliteQueue::Create(const Job& job, const JoinTerms& terms) {
  return writer_.WriteAndReturn<Job>([&](Connection& c) { return CreateJob(c, job, terms); });
}

absl::Status SqliteQueue::Identify(absl::string_view name, absl::string_view identity) {
  return writer_.Write([&](Connection& c) { return IdentifyJob(c, name, identity); });
}

absl::StatusOr<std::optional<Job>> SqliteQueue::Lease(absl::string_view name, absl::string_view holder,
                                                      absl::Duration duration) {
  return writer_.WriteAndReturn<std::optional<Job>>([&](Connection& c) -> absl::StatusOr<std::optional<Job>> {
    absl::StatusOr<JobRow> row = NamedRow(c, name);
    if (!row.ok()) return row.status();
    const absl::Time now = now_();
    if (!CanLease(row->job, holder, now)) return std::nullopt;
    return LeaseJob(c, *std::move(row), holder, now + duration);
  });
}

absl::StatusOr<Job> SqliteQueue::Renew(const Fence& fence, absl::Duration duration) {
  return writer_.WriteAndReturn<Job>([&](Connection& c) -> absl::StatusOr<Job> {
    absl::StatusOr<JobRow> row = HeldRow(c, fence);
    if (!row.ok()) return row.status();
    row->job.leased_until = now_() + duration;
    absl::Status status = Statement(c, "UPDATE jobs SET lease_until_ns = ? WHERE id = ?")
                              .Bind(absl::ToUnixNanos(row->job.leased_until), row->id)
                              .Run();
    if (!status.ok()) return status;
    return std::move(row->job);
  });
}

absl::StatusOr<std::vector<LeasedJob>> SqliteQueue::RenewAll(absl::string_view holder, absl::Duration duration) {
  absl::StatusOr<std::vector<LeasedJob>> held = readers_.With([&](Connection& c) { return LeasedJobs(c, holder); });
  if (!held.ok() || held->empty()) return held;  // who holds nothing writes nothing
  return writer_.WriteAndReturn<std::vector<LeasedJob>>([&](Connection& c) -> absl::StatusOr<std::vector<LeasedJob>> {
    absl::Status status = Statement(c, "UPDATE jobs SET lease_until_ns = ? WHERE done = 0 AND holder = ?")
                              .Bind(absl::ToUnixNanos(now_() + duration), holder)
                              .Run();
    if (!status.ok()) return status;
    return LeasedJobs(c, holder);
  });
}

absl::Status SqliteQueue::Update(const Fence& fence, const v1::Operation& operation) {
  if (absl::Status status = CheckUpdate(operation); !status.ok()) return status;
  return writer_.Write([&](Connection& c) {
    const absl::StatusOr<JobRow> row = HeldRow(c, fence);
    return row.ok() ? KeepOperation(c, row->id, operation) : row.status();
  });
}

absl::Status SqliteQueue::Finish(const Fence& fence, const v1::Operation& operation) {
  if (absl::Status status = CheckEnd(operation); !status.ok()) return status;
  return writer_.Write([&](Connection& c) { return FinishJob(c, fence, operation); });
}

absl::Status SqliteQueue::Requeue(const Fence& fence) {
  return writer_.Write([&](Connection& c) { return RequeueJob(c, fence); });
}

absl::StatusOr<Job> SqliteQueue::Cancel(absl::string_view name) {
  return writer_.WriteAndReturn<Job>([&](Connection& c) -> absl::StatusOr<Job> {
    absl::StatusOr<JobRow> row = NamedRow(c, name);
    if (!row.ok()) return row.status();
    if (row->job.operation.done()) return std::move(row->job);
    row->job.cancelled = true;
    absl::Status status = Statement(c, "UPDATE jobs SET cancelled = 1 WHERE id = ?").Bind(row->id).Run();
    if (!status.ok()) return status;
    if (status = CancelParts(c, row->job.name); !status.ok()) return status;
    return std::move(row->job);
  });
}

absl::StatusOr<Job> SqliteQueue::Get(absl::string_view name) {
  return readers_.With([&](Connection& c) { return GetJob(c, name); });
}

absl::StatusOr<std::vector<std::string>> SqliteQueue::Leasable(absl::string_view holder) {
  return readers_.With([&](Connection& c) { return LeasableJobs(c, holder, now_()); });
}

absl::StatusOr<std::vector<LeasedJob>> SqliteQueue::Held() {
  return readers_.With([](Connection& c) { return LeasedJobs(c, ""); });
}

absl::StatusOr<Page<v1::Operation>> SqliteQueue::List(const JobFilter& filter, int page_size,
                                                      absl::string_view page_token) {
  return readers_.With([&](Connection& c) { return ListJobs(c, filter, page_size, page_token); });
}

}  // namespace attune::store::sqlite
