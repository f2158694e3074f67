// Whether the database that SQLite has open is still the file of that name, and whole. SQLite goes on writing to a file
// that was moved or removed, where the next start does not find it, and into one that was cut, which ruins it.
#ifndef ATTUNE_SERVER_STORE_FILES_IN_PLACE_H_
#define ATTUNE_SERVER_STORE_FILES_IN_PLACE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace attune::store {

// Not thread-safe.
class FilesInPlace {
 public:
  // `database` is open and stays so; its write-ahead log is looked at from when it is first seen.
  explicit FilesInPlace(const std::string& database);

  // FailedPrecondition when the database or its log was moved, removed or replaced, or the database is smaller than it
  // was. OK again when they are back.
  absl::Status Check();

 private:
  struct File {
    std::string path;
    bool seen = false;
    dev_t device = 0;
    ino_t inode = 0;
    off_t least_size = 0;  // the log's: it is cut by SQLite itself
  };
  static absl::Status Check(File& file, bool may_shrink);

  File database_;
  File log_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_FILES_IN_PLACE_H_
