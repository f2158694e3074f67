// The database's schema as numbered steps. `PRAGMA user_version` counts those that a file has been through.
#ifndef ATTUNE_SERVER_STORE_SQLITE_MIGRATIONS_H_
#define ATTUNE_SERVER_STORE_SQLITE_MIGRATIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

inline constexpr int64_t kApplicationId = 0x6174746e;  // "attn", in the file's header

// Step N (from 1) is at N - 1. A step that has landed is never edited: files out there have been through it as it was.
// sqlite_migrations_test.cc holds each to its hash.
absl::Span<const std::string> Migrations();

// How many of `migrations` the file has been through. FailedPrecondition when there are more of them, or the file
// belongs to another application.
absl::StatusOr<int64_t> VersionOf(Connection& connection, absl::Span<const std::string> migrations);

// DataLoss when rows refer to others that do not exist.
absl::Status CheckForeignKeys(Connection& connection);

// Brings the file to the last of `migrations`, each in a transaction of its own; errors are VersionOf's.
absl::Status Migrate(Connection& connection, absl::Span<const std::string> migrations);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_MIGRATIONS_H_
