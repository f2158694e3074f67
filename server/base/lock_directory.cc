#include "server/base/lock_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

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

std::string LockFileName(absl::string_view uuid, absl::string_view id) {
  std::string name(uuid.empty() ? id : uuid);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
  return name + ".lock";
}

std::string LockHolder(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return "";
  return lock.l_pid > 0 ? absl::StrCat("process ", lock.l_pid) : "a process of another container or host";
}

absl::Status InUseError(absl::string_view id, absl::string_view model, absl::string_view holder,
                        absl::string_view path) {
  return absl::FailedPreconditionError(
      absl::StrCat("device ", id, " (", model, ") is in use by ", holder, ", which holds ", path));
}

absl::Status CheckUnlocked(absl::string_view directory, absl::string_view uuid, absl::string_view id,
                           absl::string_view model) {
  const absl::string_view folder = directory == "/" ? directory : absl::StripSuffix(directory, "/");
  const std::string path = absl::StrCat(folder, "/", LockFileName(uuid, id));
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return absl::OkStatus();
  const std::string holder = LockHolder(fd);
  close(fd);
  return holder.empty() ? absl::OkStatus() : InUseError(id, model, holder, path);
}

}  // namespace attune
