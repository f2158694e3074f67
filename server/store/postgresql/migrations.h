// The schema as numbered steps; table attune_schema says how many of them the database has been through.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_MIGRATIONS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_MIGRATIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/store/postgresql/pool.h"

namespace attune::store::postgresql {

// Step N (from 1) is at N - 1. A step that has landed is never edited: databases out there have been through it as it
// was. postgresql/migrations_test.cc holds each to its hash.
absl::Span<const std::string> Migrations();

// How many steps the database has been through; 0: attune was never there. FailedPrecondition when it is more than
// `known`.
absl::StatusOr<int64_t> VersionOf(Connection& connection, int64_t known);

// Brings the database to the last of `migrations`, all in one transaction; of daemons that start at once, one does it
// and the others wait. FailedPrecondition when the database has been through more than there are.
absl::Status Migrate(Pool& pool, absl::Span<const std::string> migrations);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_MIGRATIONS_H_
