// The jobs' table. What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_JOBS_H_
#define ATTUNE_SERVER_STORE_SQLITE_JOBS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

absl::StatusOr<Job> CreateJob(Connection& connection, const Job& job);
absl::Status UpdateJob(Connection& connection, absl::string_view name, const v1::Operation& operation);
absl::StatusOr<Job> GetJob(Connection& connection, absl::string_view name);
absl::StatusOr<std::vector<Job>> UnfinishedJobs(Connection& connection);
absl::StatusOr<Page<v1::Operation>> ListJobs(Connection& connection, const JobFilter& filter, int page_size,
                                             absl::string_view page_token);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_JOBS_H_
