// Making a job, or joining one. What it promises is said in queue.h.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_CREATE_JOB_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_CREATE_JOB_H_

#include "absl/status/statusor.h"
#include "server/store/postgresql/connection.h"
#include "server/store/queue.h"

namespace attune::store::postgresql {

// In a transaction, for the host `home` (queue.h). Of two that make the same at once, one is a conflict (errors.h) and
// finds the other's when repeated.
absl::StatusOr<Job> CreateJob(Connection& connection, Job job, const JoinTerms& terms, absl::string_view home);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_CREATE_JOB_H_
