#include "server/base/lock_directory.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace attune {

absl::Status JudgeLockDirectory(const std::string& path, const struct stat& info) {
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("lock_dir '", path, "' is a symbolic link or not a directory; name a directory"));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::FailedPreconditionError(absl::StrCat("lock_dir '", path, "' belongs to user ", info.st_uid,
                                                      "; it must belong to user ", geteuid(), " or to root"));
  }
  if ((info.st_mode & S_IWOTH) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("lock_dir '", path, "' may be written to by every user, each of whom could block the device; ",
                   "name one that only its owner and group may write to"));
}

absl::Status CheckLockDirectory(const std::string& path) {
  const std::string bare(path == "/" ? "/" : absl::StripSuffix(path, "/"));
  struct stat info = {};
  return lstat(bare.c_str(), &info) == 0 ? JudgeLockDirectory(bare, info) : absl::OkStatus();
}

}  // namespace attune
