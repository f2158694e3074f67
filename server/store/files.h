// Files that survive a crash: each function returns once what it did is on the disk.
#ifndef ATTUNE_SERVER_STORE_FILES_H_
#define ATTUNE_SERVER_STORE_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::store {

// A file descriptor, closed at the end of its life.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// What errno `error` means to a caller: ResourceExhausted ("disk full"), PermissionDenied, NotFound, or Unavailable;
// the message is one line with the action and the path.
absl::Status FileError(int error, absl::string_view action, absl::string_view path);

// Makes the directory and those above it that are missing.
absl::Status MakeDirectories(const std::string& path);
// Makes one directory; AlreadyExists when there is anything of its name.
absl::Status MakeNewDirectory(const std::string& path);
// ResourceExhausted ("disk full") unless the file system of the directory `path` has room for `bytes` more and keeps
// some: a fiftieth of its size, at most 1 GiB.
absl::Status CheckSpace(const std::string& path, int64_t bytes);
// Copies a file to one that must not exist.
absl::Status CopyFile(const std::string& from, const std::string& to);
// fsync of a file or a directory (after a rename in it).
absl::Status Sync(const std::string& path);
enum class ReadableBy { kAll, kOwner };  // as far as the process's umask lets them
// Fails when the file exists.
absl::Status WriteNewFile(const std::string& path, absl::string_view bytes, ReadableBy readers = ReadableBy::kAll);
// Writes beside `path`, then renames: a reader sees the old file or the new one, whole. One writer at a time.
absl::Status ReplaceFile(const std::string& path, absl::string_view bytes, ReadableBy readers = ReadableBy::kAll);
absl::StatusOr<std::string> ReadFile(const std::string& path);  // NotFound
// Moves `from` over `to`, both in one directory.
absl::Status Rename(const std::string& from, const std::string& to);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_FILES_H_
