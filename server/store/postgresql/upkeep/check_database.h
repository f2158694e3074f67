// Whether a database can be a daemon's store: a look that changes nothing in it.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_UPKEEP_CHECK_DATABASE_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_UPKEEP_CHECK_DATABASE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/postgresql/connection.h"

namespace attune::store::postgresql {

struct DatabaseReport {
  std::string where;    // server and database
  int64_t version = 0;  // of the schema; 0: a daemon makes the tables
  int64_t newest = 0;   // that this program knows, to which a daemon brings it
  int64_t trials = 0;
};

// An error says what would keep a daemon from starting: nobody answers, a version that is not known, rights that the
// role lacks.
absl::StatusOr<DatabaseReport> CheckDatabase(const ConnectionSettings& settings);

// PermissionDenied when the role may not read and write every table of the schema, which is attune's own.
absl::Status CheckRights(Connection& connection);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_UPKEEP_CHECK_DATABASE_H_
