#include "server/device/opencl/pocl_environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace attune::device::opencl {
namespace {

namespace fs = std::filesystem;

void RemoveLeftovers(const std::string& directory) {
  std::error_code ignored;  // a leftover that stays is only untidy
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    const fs::file_time_type written = entry.last_write_time(ignored);
    if (!ignored && written < oldest) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

absl::Status PreparePoclEnvironment() {
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", /*overwrite=*/0);
  setenv("POCL_KERNEL_CACHE", "0", /*overwrite=*/0);
  if (getenv("POCL_CACHE_DIR") != nullptr) return absl::OkStatus();
  const char* tmp = getenv("TMPDIR");
  const std::string directory = absl::StrCat(tmp != nullptr && *tmp != '\0' ? tmp : "/tmp", "/attune-pocl-", geteuid());
  mkdir(directory.c_str(), 0700);  // may exist; what counts is what is there now
  struct stat status;
  if (lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & 0077) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "PoCL's directory '", directory,
        "' is not a directory of this user with mode 0700; set TMPDIR or POCL_CACHE_DIR to a writable one"));
  }
  RemoveLeftovers(directory);
  setenv("POCL_CACHE_DIR", directory.c_str(), /*overwrite=*/1);
  return absl::OkStatus();
}

}  // namespace attune::device::opencl
