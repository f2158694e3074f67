#include "server/store/sqlite/reports/trial_reports.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/merged_runs.h"
#include "server/store/rows/trial_columns.h"
#include "server/store/sqlite/job_writes.h"

namespace attune::store::sqlite {
namespace {

absl::StatusOr<int64_t> FindId(Connection& connection, absl::string_view trial) {
  const absl::StatusOr<std::optional<int64_t>> found =
      Statement(connection, "SELECT id FROM trials WHERE id = ?").Bind(IdOf(kTrials, trial)).FindInt();
  if (!found.ok()) return found.status();
  if (found->has_value()) return **found;
  return NoTrial(trial);
}

// `column`: of the program's own, nothing to quote.
absl::Status Put(Connection& connection, int64_t trial_id, absl::string_view column, const std::string& message) {
  return Statement(connection, absl::StrCat("INSERT INTO trial_reports (trial_id, ", column,
                                            ") VALUES (?, ?) ON CONFLICT (trial_id) DO UPDATE SET ", column,
                                            " = excluded.", column))
      .Bind(trial_id, Blob{message})
      .Run();
}

}  // namespace

absl::Status RecordProfile(Connection& connection, absl::string_view trial, const v1::Profile& profile,
                           const JobWrite& write) {
  return Once(connection, write,
              [&]() -> absl::StatusOr<int64_t> {
                const absl::StatusOr<int64_t> id = FindId(connection, trial);
                if (!id.ok()) return id;
                absl::Status status = Put(connection, *id, "profile", profile.SerializeAsString());
                if (!status.ok()) return status;
                return *id;
              })
      .status();
}

absl::Status RecordSanitizing(Connection& connection, absl::string_view trial, const v1::Sanitizing& sanitizing,
                              const JobWrite& write) {
  return Once(connection, write,
              [&]() -> absl::StatusOr<int64_t> {
                const absl::StatusOr<int64_t> id = FindId(connection, trial);
                if (!id.ok()) return id;
                v1::Trial before;
                if (absl::Status status = AddReports(connection, *id, before); !status.ok()) return status;
                const v1::Sanitizing merged = MergedRuns(before.sanitizing(), sanitizing);
                absl::Status status = Put(connection, *id, "sanitizing", merged.SerializeAsString());
                if (!status.ok()) return status;
                return *id;
              })
      .status();
}

absl::Status AddReports(Connection& connection, int64_t trial_id, v1::Trial& trial) {
  Statement select(connection, "SELECT profile, sanitizing FROM trial_reports WHERE trial_id = ?");
  const absl::StatusOr<bool> row = select.Bind(trial_id).Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::OkStatus();
  ReadReports(select, 0, 1, trial_id, trial);
  return absl::OkStatus();
}

}  // namespace attune::store::sqlite
