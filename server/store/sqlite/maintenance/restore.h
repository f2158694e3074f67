// A store made of a backup: `attuned --restore`.
#ifndef ATTUNE_SERVER_STORE_SQLITE_RESTORE_H_
#define ATTUNE_SERVER_STORE_SQLITE_RESTORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attune::store {

struct Restored {
  int64_t trials = 0;
  int64_t incumbents = 0;  // served
  int64_t jobs = 0;
  int64_t artifacts = 0;              // files
  std::vector<std::string> left_out;  // why, for each artifact that an incumbent names and the backup lacks
};

// Makes a store in `directory`, which is made when missing, of the backup in the directory `backup`, and checks it
// (PRAGMA integrity_check, foreign keys, the artifacts' hashes). The backup stays as it is. FailedPrecondition when the
// directory has a store already, is in use, or the backup is of a newer version; NotFound when there is no backup;
// DataLoss when its database is damaged. After an error there is no database in `directory`.
absl::StatusOr<Restored> Restore(const std::string& backup, const std::string& directory);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_SQLITE_RESTORE_H_
