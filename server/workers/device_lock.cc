#include "server/workers/device_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace attune::workers {
namespace {

std::string FileName(const v1::Device& device) {
  std::string name = device.uuid().empty() ? device.id() : device.uuid();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
  return name + ".lock";
}

std::string Holder(int fd) {
  char text[32];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  return size <= 0 ? "unknown" : std::string(text, static_cast<size_t>(size));
}

}  // namespace

absl::StatusOr<DeviceLock> DeviceLock::Take(const std::string& directory, const v1::Device& device) {
  if (directory.empty()) return absl::InvalidArgumentError("lock_dir is empty; it must name a directory");
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("lock_dir '", directory, "'"));
  const std::string path = absl::StrCat(directory, "/", FileName(device));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  DeviceLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, path);
    return absl::FailedPreconditionError(absl::StrCat("device ", device.id(), " (", device.model(),
                                                      ") is in use by process ", Holder(fd), ", which holds ", path));
  }
  const std::string pid = absl::StrCat(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return absl::ErrnoToStatus(errno, path);
  }
  return lock;
}

DeviceLock::~DeviceLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace attune::workers
