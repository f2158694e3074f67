#include "server/store/sqlite/job_writes.h"

#include <optional>

#include "server/store/sqlite/jobs.h"

namespace attune::store::sqlite {
namespace {

// The row of a job that the fence still holds.
absl::StatusOr<int64_t> HeldJob(Connection& connection, const Fence& fence) {
  absl::StatusOr<std::optional<int64_t>> held =
      Statement(connection, "SELECT id FROM jobs WHERE name = ? AND epoch = ? AND holder IS NOT NULL AND done = 0")
          .Bind(fence.job, fence.epoch)
          .FindInt();
  if (!held.ok()) return held.status();
  if (held->has_value()) return **held;
  absl::StatusOr<Job> now = GetJob(connection, fence.job);
  if (!now.ok()) return now.status();
  return StaleError(fence, *now);
}

}  // namespace

absl::StatusOr<int64_t> Once(Connection& connection, const JobWrite& write,
                             absl::FunctionRef<absl::StatusOr<int64_t>()> make) {
  if (write.fence.job.empty()) return make();
  const absl::StatusOr<int64_t> job = HeldJob(connection, write.fence);
  if (!job.ok()) return job.status();
  absl::StatusOr<std::optional<int64_t>> former =
      Statement(connection, "SELECT row_id FROM job_writes WHERE job_id = ? AND write_id = ?")
          .Bind(*job, write.id)
          .FindInt();
  if (!former.ok()) return former.status();
  if (former->has_value()) return **former;
  absl::StatusOr<int64_t> made = make();
  if (!made.ok()) return made;
  absl::Status noted = Statement(connection, "INSERT INTO job_writes (job_id, write_id, row_id) VALUES (?, ?, ?)")
                           .Bind(*job, write.id, *made)
                           .Run();
  if (!noted.ok()) return noted;
  return made;
}

absl::Status ForgetWrites(Connection& connection, int64_t job_id) {
  return Statement(connection, "DELETE FROM job_writes WHERE job_id = ?").Bind(job_id).Run();
}

}  // namespace attune::store::sqlite
