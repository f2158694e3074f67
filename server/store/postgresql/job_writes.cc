#include "server/store/postgresql/job_writes.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "server/store/postgresql/jobs.h"
#include "server/store/postgresql/sql.h"

namespace attune::store::postgresql {
namespace {

// The row of a job that the fence still holds, and will until the transaction ends.
absl::StatusOr<int64_t> HeldJob(Connection& connection, const Fence& fence) {
  const absl::StatusOr<std::optional<int64_t>> held =
      Sql("SELECT id FROM jobs WHERE name = ? AND epoch = ? AND holder IS NOT NULL AND NOT done FOR SHARE", fence.job,
          fence.epoch)
          .FindInt(connection);
  if (!held.ok()) return held.status();
  if (held->has_value()) return **held;
  const absl::StatusOr<JobRow> now = NamedJob(connection, fence.job, RowLock::kNone);
  if (!now.ok()) return now.status();
  return StaleError(fence, now->job);
}

absl::StatusOr<bool> WasMade(Connection& connection, const MadeRow& made) {
  if (made.id == 0) return false;
  const absl::StatusOr<std::optional<int64_t>> found =
      Sql(absl::StrCat("SELECT id FROM ", made.table, " WHERE id = ?"), made.id).FindInt(connection);
  if (!found.ok()) return found.status();
  return found->has_value();
}

absl::StatusOr<int64_t> Make(MadeRow& made, absl::FunctionRef<absl::StatusOr<int64_t>()> make) {
  absl::StatusOr<int64_t> id = make();
  if (id.ok()) made.id = *id;
  return id;
}

}  // namespace

absl::StatusOr<int64_t> Once(Connection& connection, const JobWrite& write, MadeRow& made,
                             absl::FunctionRef<absl::StatusOr<int64_t>()> make) {
  const absl::StatusOr<bool> before = WasMade(connection, made);
  if (!before.ok()) return before.status();
  if (*before) return made.id;
  if (write.fence.job.empty()) return Make(made, make);
  const absl::StatusOr<int64_t> job = HeldJob(connection, write.fence);
  if (!job.ok()) return job.status();
  const absl::StatusOr<std::optional<int64_t>> former =
      Sql("SELECT row_id FROM job_writes WHERE job_id = ? AND write_id = ?", *job, write.id).FindInt(connection);
  if (!former.ok()) return former.status();
  if (former->has_value()) return **former;
  const absl::StatusOr<int64_t> id = Make(made, make);
  if (!id.ok()) return id;
  absl::Status noted = Sql("INSERT INTO job_writes (job_id, write_id, row_id) VALUES (?, ?, ?)", *job, write.id, *id)
                           .Execute(connection);
  if (!noted.ok()) return noted;
  return id;
}

absl::Status WhileHeld(Connection& connection, const JobWrite& write, absl::FunctionRef<absl::Status()> change) {
  if (!write.fence.job.empty()) {
    const absl::StatusOr<int64_t> job = HeldJob(connection, write.fence);
    if (!job.ok()) return job.status();
  }
  return change();
}

absl::Status ForgetWrites(Connection& connection, int64_t job_id) {
  return connection.Execute("DELETE FROM job_writes WHERE job_id = $1", job_id);
}

}  // namespace attune::store::postgresql
