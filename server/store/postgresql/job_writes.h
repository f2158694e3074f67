// Writes for a job: refused when they are stale, made once when they are repeated. In a transaction.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_JOB_WRITES_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_JOB_WRITES_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/postgresql/connection.h"
#include "server/store/queue.h"

namespace attune::store::postgresql {

// The row that a call has made, kept over its tries: after one whose answer was lost, the next finds whether it was
// committed. Numbers of rows are given once, also those of transactions that were rolled back.
struct MadeRow {
  std::string table;
  int64_t id = 0;
};

// `make` makes a row of `made.table` and returns its id. What an equal write made earlier is returned instead. The job
// is locked until the transaction ends: nobody leases it meanwhile.
absl::StatusOr<int64_t> Once(Connection& connection, const JobWrite& write, MadeRow& made,
                             absl::FunctionRef<absl::StatusOr<int64_t>()> make);
// The same of a change that may be repeated.
absl::Status WhileHeld(Connection& connection, const JobWrite& write, absl::FunctionRef<absl::Status()> change);

// Forgets the writes of a job whose lease is over.
absl::Status ForgetWrites(Connection& connection, int64_t job_id);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_JOB_WRITES_H_
