#include "server/store/sqlite_jobs.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/sqlite_names.h"
#include "server/store/sqlite_page.h"

namespace attune::store::sqlite {
namespace {

constexpr absl::string_view kColumns = "SELECT id, name, kind, request, request_id, operation FROM jobs WHERE ";

absl::StatusOr<Job> ReadJob(const Statement& row) {
  Job job;
  job.name = std::string(row.Text(1));
  job.kind = static_cast<JobKind>(row.Int(2));
  job.request = std::string(row.Bytes(3));
  job.request_id = std::string(row.Text(4));
  if (absl::Status status = Parse(row.Bytes(5), "operation", job.operation); !status.ok()) return status;
  return job;
}

absl::StatusOr<std::optional<Job>> FindJob(Connection& connection, absl::string_view condition,
                                           absl::string_view value) {
  Statement select(connection, absl::StrCat(kColumns, condition));
  absl::StatusOr<bool> row = select.Bind(value).Step();
  if (!row.ok()) return row.status();
  if (!*row) return std::nullopt;
  absl::StatusOr<Job> job = ReadJob(select);
  if (!job.ok()) return job.status();
  return *std::move(job);
}

absl::Status NoJob(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("operation '", name, "' does not exist"));
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
  const std::string operation = job.operation.SerializeAsString();
  absl::Status status =
      Statement(connection,
                "INSERT INTO jobs (name, kind, request, request_id, done, operation) VALUES (?, ?, ?, ?, ?, ?)")
          .Bind(job.name, static_cast<int>(job.kind), Blob{job.request}, request_id, job.operation.done() ? 1 : 0,
                Blob{operation})
          .Run();
  if (!status.ok()) return status;
  return job;
}

absl::Status UpdateJob(Connection& connection, absl::string_view name, const v1::Operation& operation) {
  const std::string message = operation.SerializeAsString();
  absl::Status status = Statement(connection, "UPDATE jobs SET operation = ?, done = ? WHERE name = ?")
                            .Bind(Blob{message}, operation.done() ? 1 : 0, name)
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
  Statement select(connection, absl::StrCat(kColumns, "done = 0 ORDER BY id"));
  std::vector<Job> jobs;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return jobs;
    absl::StatusOr<Job> job = ReadJob(select);
    if (!job.ok()) return job.status();
    jobs.push_back(*std::move(job));
  }
}

absl::StatusOr<Page<v1::Operation>> ListJobs(Connection& connection, bool active_only, int page_size,
                                             absl::string_view page_token) {
  const absl::string_view listing = active_only ? "active jobs" : "all jobs";
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  Statement select(connection,
                   absl::StrCat(kColumns, active_only ? "done = 0 AND " : "", "id < ? ORDER BY id DESC LIMIT ?"));
  const int size = PageSize(page_size);
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max(), size + 1);
  return ReadPage<v1::Operation>(
      select, listing, size,
      [](const Statement& row) -> absl::StatusOr<v1::Operation> {
        absl::StatusOr<Job> job = ReadJob(row);
        if (!job.ok()) return job.status();
        return std::move(job->operation);
      },
      [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
