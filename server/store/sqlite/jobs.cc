#include "server/store/sqlite/jobs.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/quote.h"
#include "server/store/sqlite/names.h"
#include "server/store/sqlite/page.h"

namespace attune::store::sqlite {
namespace {

constexpr absl::string_view kJobColumns = "SELECT id, name, kind, request, request_id, operation FROM jobs WHERE ";

absl::StatusOr<Job> ReadJob(const Statement& row) {
  Job job;
  job.name = std::string(row.Text(1));
  job.kind = static_cast<JobKind>(row.Int(2));
  job.request = std::string(row.Bytes(3));
  job.request_id = std::string(row.Text(4));
  if (absl::Status status = Parse(row.Bytes(5), "operation", job.operation); !status.ok()) return status;
  return job;
}

// For lists.
v1::Operation DamagedOperation(const Statement& row, const absl::Status& status) {
  v1::Operation operation;
  operation.set_name(std::string(row.Text(1)));
  operation.set_state(v1::Operation::STATE_FAILED);
  operation.set_done(true);
  operation.mutable_error()->set_code(static_cast<int>(status.code()));
  operation.mutable_error()->set_message(std::string(status.message()));
  return operation;
}

absl::StatusOr<std::optional<Job>> FindJob(Connection& connection, absl::string_view condition,
                                           absl::string_view value) {
  Statement select(connection, absl::StrCat(kJobColumns, condition));
  absl::StatusOr<bool> row = select.Bind(value).Step();
  if (!row.ok()) return row.status();
  if (!*row) return std::nullopt;
  absl::StatusOr<Job> job = ReadJob(select);
  if (!job.ok()) return job.status();
  return *std::move(job);
}

std::optional<int64_t> EndOf(const v1::Operation& operation) {
  if (!operation.done()) return std::nullopt;
  return ToNanoseconds(operation.has_end_time() ? operation.end_time() : Now());
}

absl::Status NoJob(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("operation ", Quoted(name), " does not exist"));
}

}  // namespace

absl::StatusOr<Job> CreateJob(Connection& connection, const Job& job) {
  if (job.name.empty()) return absl::InvalidArgumentError("job: name is empty; it must be operations/<id>");
  std::optional<absl::string_view> request_id;
  if (!job.request_id.empty()) {
    request_id = job.request_id;
    absl::StatusOr<std::optional<Job>> former = FindJob(connection, "request_id = ?", job.request_id);
    if (!former.ok()) return former.status();
    if (former->has_value()) return **std::move(former);
  }
  absl::StatusOr<std::optional<Job>> same = FindJob(connection, "name = ?", job.name);
  if (!same.ok()) return same.status();
  if (same->has_value()) return absl::AlreadyExistsError(absl::StrCat("job: name ", job.name, " is taken"));
  std::optional<int64_t> problem;
  if (!job.operation.problem().empty()) {
    absl::StatusOr<int64_t> interned = InternProblem(connection, job.operation.problem());
    if (!interned.ok()) return interned.status();
    problem = *interned;
  }
  const std::string operation = job.operation.SerializeAsString();
  absl::Status status = Statement(connection,
                                  "INSERT INTO jobs (name, kind, request, request_id, done, operation, problem_id,"
                                  " end_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
                            .Bind(job.name, static_cast<int>(job.kind), Blob{job.request}, request_id,
                                  job.operation.done() ? 1 : 0, Blob{operation}, problem, EndOf(job.operation))
                            .Run();
  if (!status.ok()) return status;
  return job;
}

absl::Status UpdateJob(Connection& connection, absl::string_view name, const v1::Operation& operation) {
  const std::string message = operation.SerializeAsString();
  absl::Status status = Statement(connection, "UPDATE jobs SET operation = ?, done = ?, end_ns = ? WHERE name = ?")
                            .Bind(Blob{message}, operation.done() ? 1 : 0, EndOf(operation), name)
                            .Run();
  if (!status.ok()) return status;
  return connection.Changes() == 1 ? absl::OkStatus() : NoJob(name);
}

absl::StatusOr<Job> GetJob(Connection& connection, absl::string_view name) {
  absl::StatusOr<std::optional<Job>> job = FindJob(connection, "name = ?", name);
  if (!job.ok()) return job.status();
  if (!job->has_value()) return NoJob(name);
  return **std::move(job);
}

absl::StatusOr<std::vector<Job>> UnfinishedJobs(Connection& connection) {
  Statement select(connection, absl::StrCat(kJobColumns, "done = 0 ORDER BY id"));
  std::vector<Job> jobs;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return jobs;
    absl::StatusOr<Job> job = ReadJob(select);
    if (job.ok()) {
      jobs.push_back(*std::move(job));
    } else if (!SkipDamaged(job.status(), "jobs", select.Int(0))) {
      return job.status();
    }
  }
}

absl::StatusOr<Page<v1::Operation>> ListJobs(Connection& connection, const JobFilter& filter, int page_size,
                                             absl::string_view page_token) {
  const std::string listing = absl::StrCat(filter.active_only ? "active jobs " : "all jobs ", filter.problem_text);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  std::vector<absl::string_view> conditions = {"id < ?"};
  if (filter.active_only) conditions.push_back("done = 0");
  if (!filter.problem_text.empty()) conditions.push_back("problem_id = (SELECT id FROM problems WHERE text = ?)");
  Statement select(connection,
                   absl::StrCat(kJobColumns, absl::StrJoin(conditions, " AND "), " ORDER BY id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  if (!filter.problem_text.empty()) select.Bind(filter.problem_text);
  const int size = PageSize(page_size);
  select.Bind(size + 1);
  return ReadPage<v1::Operation>(
      select, "jobs", listing, size,
      [](const Statement& row) -> absl::StatusOr<v1::Operation> {
        absl::StatusOr<Job> job = ReadJob(row);
        if (SkipDamaged(job.status(), "jobs", row.Int(0))) return DamagedOperation(row, job.status());
        if (!job.ok()) return job.status();
        return std::move(job->operation);
      },
      [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
