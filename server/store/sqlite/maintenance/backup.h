// Copies of a database in use, and what such a copy holds.
#ifndef ATTUNE_SERVER_STORE_SQLITE_BACKUP_H_
#define ATTUNE_SERVER_STORE_SQLITE_BACKUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

struct CopyContents {
  int64_t trials = 0;
  int64_t incumbents = 0;  // served
  int64_t jobs = 0;
  std::vector<std::string> artifacts;  // ArtifactsOfIncumbents
};

// No journal beside the copy and no sync within it: when it fails it is thrown away, and CheckCopy syncs it whole.
absl::Status WriteUnsynced(Connection& copy);

// Copies `source` as it is at one moment into the new file `file`. `source` may be a reader of a database in use.
absl::Status CopyDatabase(Connection& source, const std::string& file);

// Checks that a copy, which nobody else has open, is a whole database of attune's of a known version (PRAGMA
// integrity_check, foreign keys), and leaves it as a single file that is on disk. DataLoss when it is damaged or empty,
// FailedPrecondition when it is of a newer version or another application.
absl::StatusOr<CopyContents> CheckCopy(const std::string& file);

// SHA-256 of the artifacts that incumbents and their alternatives name, past ones too; each once.
absl::StatusOr<std::vector<std::string>> ArtifactsOfIncumbents(Connection& connection);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_BACKUP_H_
