#include "server/store/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace attune::store {

absl::StatusOr<LockFile> LockFile::Acquire(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return FileError(errno, "open", path);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileError(errno, "lock", path);
    absl::StatusOr<std::string> holder = ReadFile(path);
    const std::string pid = holder.ok() ? std::string(absl::StripAsciiWhitespace(*holder)) : "";
    return absl::FailedPreconditionError(absl::StrCat("the store is in use by ",
                                                      pid.empty() ? "another process" : absl::StrCat("process ", pid),
                                                      " (", path, " is locked)"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(file.get(), 0) != 0 || pwrite(file.get(), pid.data(), pid.size(), 0) < 0) {
    return FileError(errno, "write", path);
  }
  return LockFile(std::move(file));
}

}  // namespace attune::store
