#include "server/worker/device_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/lock_directory.h"
#include "server/worker/system_calls.h"

namespace attune::worker {
namespace {

// As mkdir -p. What is there already is judged when it is opened.
absl::Status MakeDirectories(const std::filesystem::path& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  const std::filesystem::path parent = path.parent_path();
  const absl::Status failed = absl::ErrnoToStatus(errno, absl::StrCat("cannot make lock_dir '", path.string(), "'"));
  if (errno != ENOENT || parent.empty() || parent == path) return failed;
  if (absl::Status status = MakeDirectories(parent); !status.ok()) return status;
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST ? absl::OkStatus() : failed;
}

// The directory's descriptor: what is checked is then what is used, whoever renames it meanwhile.
absl::StatusOr<int> OpenDirectory(const std::string& path) {
  if (absl::Status status = MakeDirectories(path); !status.ok()) return status;
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
    return absl::FailedPreconditionError(
        absl::StrCat("lock_dir '", path, "' is a symbolic link or not a directory; name a directory"));
  }
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open lock_dir '", path, "'"));
  struct stat info = {};
  fstat(fd, &info);
  if (absl::Status status = JudgeLockDirectory(path, info); !status.ok()) {
    close(fd);
    return status;
  }
  return fd;
}

// The file under a number that no kernel may close (system_calls.h): closing any descriptor of a file gives up the
// process's locks on it.
int Kept(int fd) {
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, kFirstKept);
  if (kept < 0) return fd;
  close(fd);
  return kept;
}

}  // namespace

absl::Status DeviceLock::MakeDirectory(const std::string& directory) { return MakeDirectories(directory); }

absl::StatusOr<DeviceLock> DeviceLock::Take(const std::string& directory, const attune::v1::Device& device) {
  if (directory.empty()) return absl::InvalidArgumentError("lock_dir is empty; it must name a directory");
  const std::string folder_path(directory == "/" ? "/" : absl::StripSuffix(directory, "/"));
  const absl::StatusOr<int> folder = OpenDirectory(folder_path);
  if (!folder.ok()) return folder.status();
  const absl::Cleanup close_folder = [&folder] { close(*folder); };

  const std::string path = absl::StrCat(folder_path, "/", LockFileName(device.uuid(), device.id()));
  const int fd = openat(*folder, LockFileName(device.uuid(), device.id()).c_str(),
                        O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0660);
  if (fd < 0 && errno == ELOOP) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a symbolic link; remove it"));
  }
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  DeviceLock taken(Kept(fd));
  while (true) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    if (fcntl(taken.fd_, F_SETLK, &lock) == 0) return taken;
    if (errno != EAGAIN && errno != EACCES) return absl::ErrnoToStatus(errno, path);
    const std::string holder = LockHolder(taken.fd_);
    if (holder.empty()) continue;  // it has let go in between
    return InUseError(device.id(), device.model(), holder, path);
  }
}

DeviceLock::~DeviceLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace attune::worker
