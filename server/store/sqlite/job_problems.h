// The problems of jobs from before the schema's step 2, which did not store them beside the request.
#ifndef ATTUNE_SERVER_STORE_SQLITE_JOB_PROBLEMS_H_
#define ATTUNE_SERVER_STORE_SQLITE_JOB_PROBLEMS_H_

#include "absl/status/status.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

// Gives each job that tunes or evaluates one problem, and does not name it yet, the problem of its request. Jobs whose
// request or operation is damaged stay as they are. For the writer, at each start; it writes once.
absl::Status NameProblemsOfJobs(Connection& connection);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_JOB_PROBLEMS_H_
