// Writes for a job: refused when they are stale, made once when they are repeated. For the writer.
#ifndef ATTUNE_SERVER_STORE_SQLITE_JOB_WRITES_H_
#define ATTUNE_SERVER_STORE_SQLITE_JOB_WRITES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/queue.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

// `make` makes a row and returns its id. What an equal write made earlier is returned instead.
absl::StatusOr<int64_t> Once(Connection& connection, const JobWrite& write,
                             absl::FunctionRef<absl::StatusOr<int64_t>()> make);

// Forgets the writes of a job whose lease is over.
absl::Status ForgetWrites(Connection& connection, int64_t job_id);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_JOB_WRITES_H_
