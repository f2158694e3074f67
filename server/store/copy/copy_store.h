// A whole store, from SQLite to PostgreSQL or back: `attuned --copy_from`. docs/store.md says what is copied.
#ifndef ATTUNE_SERVER_STORE_COPY_COPY_STORE_H_
#define ATTUNE_SERVER_STORE_COPY_COPY_STORE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::store {

// A directory, or a connection string of PostgreSQL.
struct StoreAddress {
  std::string directory = {};
  std::string database = {};  // empty: SQLite in the directory
};
// What begins with postgresql:// or postgres:// is a connection string.
StoreAddress ParseStoreAddress(absl::string_view text);

// InvalidArgument unless one is SQLite's and the other PostgreSQL's, with a connection string that is valid.
absl::Status CheckAddresses(const StoreAddress& from, const StoreAddress& to);

struct CopyOptions {
  StoreAddress from;
  StoreAddress to;
  // To PostgreSQL: the holder (queue.h) whose the jobs are there. Asked once the stores are known to be fit.
  std::function<absl::StatusOr<std::string>()> home = [] { return std::string(); };
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
};

struct CopyReport {
  std::string from;
  std::string to;
  std::vector<std::pair<std::string, int64_t>> rows;  // by table; each was read in both and is the same
  int64_t artifacts = 0;                              // of compiled code
  int64_t blobs = 0;                                  // contents
  int64_t bytes = 0;                                  // of both
  std::vector<std::string> left_out;                  // why, for each artifact and blob that is gone or damaged
  std::vector<std::string> live_hosts;                // that had the source open when the copy began
  std::string home;                                   // whose unfinished jobs are, on PostgreSQL
};

// Fills the store `to`, which must be empty, with all of `from`, reads both, and compares row by row and byte by byte;
// only then there is a store in `to`. After an error, or a kill, a database is as empty as before, and a directory has
// no attune.db; files may stay below artifacts/ and blobs/, which the next copy uses. `from` stays as it is, but for
// SQLite's -wal and -shm and attune.lock, and what `home` makes there.
//
// InvalidArgument as CheckAddresses, or for a row that `to` cannot store. FailedPrecondition when `to` is not empty or
// in use, `from` is on SQLite and in use, a schema is of another version than this program's, or `from` has what SQLite
// cannot have. DataLoss names the first difference.
absl::StatusOr<CopyReport> CopyStore(const CopyOptions& options);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_COPY_COPY_STORE_H_
