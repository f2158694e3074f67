#include "server/store/sqlite/jobs.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/store/lease_rules.h"
#include "server/store/read_page.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {
namespace {

constexpr absl::string_view kJobColumns =
    "SELECT id, name, kind, request, request_id, operation, identity, holder, epoch, lease_until_ns, cancelled,"
    " parent"
    " FROM jobs WHERE ";

absl::StatusOr<Job> ReadJob(const Statement& row) {
  Job job;
  job.name = std::string(row.Text(1));
  job.kind = static_cast<JobKind>(row.Int(2));
  job.request = std::string(row.Bytes(3));
  job.request_id = std::string(row.Text(4));
  if (absl::Status status = Parse(row.Bytes(5), "operation", job.operation); !status.ok()) return status;
  job.identity = std::string(row.Text(6));
  job.holder = std::string(row.Text(7));
  job.epoch = row.Int(8);
  if (job.epoch > 0) job.leased_until = absl::FromUnixNanos(row.Int(9));
  job.cancelled = row.Int(10) != 0;
  job.parent = std::string(row.Text(11));
  return job;
}

}  // namespace

absl::StatusOr<std::optional<JobRow>> FindJob(Connection& connection, absl::string_view condition,
                                              absl::string_view value) {
  Statement select(connection, absl::StrCat(kJobColumns, condition));
  absl::StatusOr<bool> row = select.Bind(value).Step();
  if (!row.ok()) return row.status();
  if (!*row) return std::nullopt;
  absl::StatusOr<Job> job = ReadJob(select);
  if (!job.ok()) return job.status();
  return JobRow{select.Int(0), *std::move(job)};
}

absl::StatusOr<Job> GetJob(Connection& connection, absl::string_view name) {
  absl::StatusOr<std::optional<JobRow>> row = FindJob(connection, "name = ?", name);
  if (!row.ok()) return row.status();
  if (!row->has_value()) return NoJob(name);
  return std::move((*row)->job);
}

absl::StatusOr<std::vector<std::string>> LeasableJobs(Connection& connection, absl::string_view holder,
                                                      absl::Time now) {
  Statement select(connection,
                   "SELECT name FROM jobs WHERE done = 0 AND (holder IS NULL OR holder = ? OR lease_until_ns <= ?)"
                   " ORDER BY id");
  select.Bind(holder, absl::ToUnixNanos(now));
  std::vector<std::string> names;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return names;
    names.emplace_back(select.Text(0));
  }
}

absl::StatusOr<std::vector<LeasedJob>> LeasedJobs(Connection& connection, absl::string_view holder) {
  Statement select(connection,
                   "SELECT name, holder, epoch, cancelled FROM jobs WHERE done = 0 AND holder IS NOT NULL"
                   " AND (holder = ?1 OR ?1 = '') ORDER BY name");
  select.Bind(holder);
  std::vector<LeasedJob> held;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return held;
    held.push_back({std::string(select.Text(0)), std::string(select.Text(1)), select.Int(2), select.Int(3) != 0});
  }
}

absl::StatusOr<Page<v1::Operation>> ListJobs(Connection& connection, const JobFilter& filter, int page_size,
                                             absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  std::vector<absl::string_view> conditions = {"id < ?", filter.parent.empty() ? "parent IS NULL" : "parent = ?"};
  if (filter.active_only) conditions.push_back("done = 0");
  if (!filter.problem_text.empty()) conditions.push_back("problem_id = (SELECT id FROM problems WHERE text = ?)");
  if (filter.kind.has_value()) conditions.push_back("kind = ?");
  Statement select(connection,
                   absl::StrCat(kJobColumns, absl::StrJoin(conditions, " AND "), " ORDER BY id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  if (!filter.parent.empty()) select.Bind(filter.parent);
  if (!filter.problem_text.empty()) select.Bind(filter.problem_text);
  if (filter.kind.has_value()) select.Bind(static_cast<int>(*filter.kind));
  const int size = PageSize(page_size);
  select.Bind(size + 1);
  return ReadPage<v1::Operation>(
      select, "jobs", listing, size,
      [](const Statement& row) -> absl::StatusOr<v1::Operation> {
        absl::StatusOr<Job> job = ReadJob(row);
        if (SkipDamaged(job.status(), "jobs", row.Int(0))) return DamagedOperation(row.Text(1), job.status());
        if (!job.ok()) return job.status();
        return std::move(job->operation);
      },
      [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
