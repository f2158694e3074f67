// Keeps a second process out of a store's directory.
#ifndef ATTUNE_SERVER_STORE_LOCK_FILE_H_
#define ATTUNE_SERVER_STORE_LOCK_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/store/files.h"

namespace attune::store {

// Held from Acquire to the end of its life; the kernel lets go of it when the process dies, however it dies. A file of
// its own, because closing any descriptor of the database file would drop SQLite's locks on it.
class LockFile {
 public:
  // FailedPrecondition names the file and the holder's process id.
  static absl::StatusOr<LockFile> Acquire(const std::string& path);

 private:
  explicit LockFile(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_LOCK_FILE_H_
