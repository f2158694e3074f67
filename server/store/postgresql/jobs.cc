#include "server/store/postgresql/jobs.h"

#include <limits>
#include <utility>

#include "absl/strings/str_split.h"
#include "server/store/damaged_rows.h"
#include "server/store/lease_rules.h"
#include "server/store/page_token.h"
#include "server/store/read_page.h"

namespace attune::store::postgresql {
namespace {

constexpr char kLeasable[] =
    "SELECT name FROM jobs WHERE NOT done AND device_class IS NULL AND home IN ('', $1)"
    " AND (holder IS NULL OR holder = $1 OR lease_until <= statement_timestamp()) ORDER BY id";

}  // namespace

absl::StatusOr<JobRow> ReadJob(const Rows& row) {
  JobRow read{.id = row.Int(0), .job = {}, .now = absl::FromUnixMicros(row.Int(12))};
  Job& job = read.job;
  job.name = std::string(row.Text(1));
  job.kind = static_cast<JobKind>(row.Int(2));
  job.request = std::string(row.Bytes(3));
  job.request_id = std::string(row.Text(4));
  if (absl::Status status = Parse(row.Bytes(5), "operation", job.operation); !status.ok()) return status;
  job.identity = std::string(row.Bytes(6));
  job.holder = std::string(row.Text(7));
  job.epoch = row.Int(8);
  if (job.epoch > 0) job.leased_until = absl::FromUnixMicros(row.Int(9));
  job.cancelled = row.Bool(10);
  job.parent = std::string(row.Text(11));
  job.home = std::string(row.Text(13));
  job.device_class = std::string(row.Text(14));
  job.priority = row.Int(15);
  job.lost_by = absl::StrSplit(row.Text(16), ',', absl::SkipEmpty());
  return read;
}

absl::StatusOr<JobRow> NamedJob(Connection& connection, absl::string_view name, RowLock lock) {
  absl::StatusOr<std::optional<JobRow>> row = FindJob(connection, "name = $1", name, lock);
  if (!row.ok()) return row.status();
  if (!row->has_value()) return NoJob(name);
  return **std::move(row);
}

absl::StatusOr<std::vector<std::string>> LeasableJobs(Connection& connection, absl::string_view holder) {
  absl::StatusOr<Rows> rows = connection.Query(kLeasable, holder);
  if (!rows.ok()) return rows.status();
  std::vector<std::string> names;
  while (*rows->Step()) names.emplace_back(rows->Text(0));
  return names;
}

std::vector<LeasedJob> ReadHeld(Rows rows) {
  std::vector<LeasedJob> held;
  while (*rows.Step()) {
    held.push_back({std::string(rows.Text(0)), std::string(rows.Text(1)), rows.Int(2), rows.Bool(3)});
  }
  return held;
}

absl::StatusOr<std::vector<LeasedJob>> LeasedJobs(Connection& connection, absl::string_view holder) {
  absl::StatusOr<Rows> rows = connection.Query(
      absl::StrCat("SELECT", kHeldColumns,
                   "FROM jobs WHERE NOT done AND holder IS NOT NULL AND ($1 = '' OR holder = $1) ORDER BY name"),
      holder);
  if (!rows.ok()) return rows.status();
  return ReadHeld(*std::move(rows));
}

absl::StatusOr<Page<v1::Operation>> ListJobs(Connection& connection, const JobFilter& filter, int page_size,
                                             absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const int size = PageSize(page_size);
  // $3 to $5 are given always, so that their types are known.
  const std::string sql = absl::StrCat(
      "SELECT", kJobColumns, "FROM jobs WHERE jobs.id < $1 AND parent_id IS ",
      filter.parent.empty() ? "NULL AND $3 = ''" : "NOT NULL AND parent_id = (SELECT id FROM jobs WHERE name = $3)",
      filter.problem_text.empty() ? " AND $4 = ''" : " AND problem = $4",
      filter.kind.has_value() ? " AND kind = $5" : " AND $5 = 0", filter.active_only ? " AND NOT done" : "",
      " ORDER BY jobs.id DESC LIMIT $2");
  absl::StatusOr<Rows> rows =
      connection.Query(sql, after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max(), size + 1,
                       filter.parent, filter.problem_text, static_cast<int>(filter.kind.value_or(JobKind{})));
  if (!rows.ok()) return rows.status();
  return ReadPage<v1::Operation>(
      *rows, "jobs", listing, size,
      [](const Rows& row) -> absl::StatusOr<v1::Operation> {
        absl::StatusOr<JobRow> job = ReadJob(row);
        if (SkipDamaged(job.status(), "jobs", row.Int(0))) return DamagedOperation(row.Text(1), job.status());
        if (!job.ok()) return job.status();
        return std::move(job->job.operation);
      },
      [](const Rows& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::postgresql
