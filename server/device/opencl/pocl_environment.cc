#include "server/device/opencl/pocl_environment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace attune::device::opencl {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "process-";

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// Below the folder for temporary files, where others write, too.
absl::StatusOr<std::string> DefaultParent() {
  const std::string tmp = Variable("TMPDIR");
  std::string parent = absl::StrCat(tmp.empty() ? "/tmp" : tmp, "/attune-pocl-", geteuid());
  mkdir(parent.c_str(), 0700);  // may exist; what counts is what is there now
  struct stat status;
  if (lstat(parent.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & 0077) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "PoCL's directory '", parent,
        "' is not a directory of this user with mode 0700; set TMPDIR or POCL_CACHE_DIR to a writable one"));
  }
  return parent;
}

// The lock on a process's directory; -1 when it is gone or another has it. It falls with the process.
int LockDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat locked, named;  // who removes it may have been faster
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &locked) == 0 && stat(directory.c_str(), &named) == 0 &&
      locked.st_ino == named.st_ino) {
    return fd;
  }
  close(fd);
  return -1;
}

// What processes that are gone have left.
void RemoveLeftovers(const std::string& parent) {
  std::error_code ignored;  // a leftover that stays is only untidy
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    const int fd = LockDirectory(entry.path());
    if (fd < 0) continue;
    fs::remove_all(entry.path(), ignored);
    close(fd);
  }
}

// A new directory of this process's own.
absl::StatusOr<std::string> MakeDirectory(const std::string& parent) {
  constexpr int kTries = 100;  // another process may lock and remove what this one has not locked yet
  std::string error;
  for (int i = 0; i < kTries; ++i) {
    std::string directory = absl::StrCat(parent, "/", kPrefix, "XXXXXX");
    if (mkdtemp(directory.data()) == nullptr) {
      error = strerror(errno);
      break;
    }
    if (LockDirectory(directory) >= 0) return directory;  // held open for as long as the process lives
    error = "a directory in it cannot be locked";
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot make a directory for PoCL in '", parent, "': ", error,
                                                    "; set TMPDIR or POCL_CACHE_DIR to a writable one"));
}

}  // namespace

absl::Status PreparePoclEnvironment() {
  static std::string prepared;
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", /*overwrite=*/0);
  setenv("POCL_KERNEL_CACHE", "0", /*overwrite=*/0);
  if (!prepared.empty() || Variable("POCL_KERNEL_CACHE") != "0") return absl::OkStatus();
  std::string parent = Variable("POCL_CACHE_DIR");
  if (!parent.empty()) {
    mkdir(parent.c_str(), 0700);  // may exist
  } else if (absl::StatusOr<std::string> made = DefaultParent(); made.ok()) {
    parent = *std::move(made);
  } else {
    return made.status();
  }
  RemoveLeftovers(parent);
  absl::StatusOr<std::string> directory = MakeDirectory(parent);
  if (!directory.ok()) return directory.status();
  prepared = *std::move(directory);
  setenv("POCL_CACHE_DIR", prepared.c_str(), /*overwrite=*/1);
  return absl::OkStatus();
}

}  // namespace attune::device::opencl
