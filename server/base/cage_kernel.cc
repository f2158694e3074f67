#include "server/base/cage_kernel.h"

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace attune {
namespace {

bool HasFilters() {
  const uint32_t action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

}  // namespace

int LandlockVersion() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

std::vector<std::string> MissingWalls() {
  std::vector<std::string> missing;
  if (!HasFilters()) {
    missing.emplace_back(
        "this kernel has no seccomp filters, or forbids them: compilers, and kernels on the CPU, may make any system "
        "call that the daemon's user may");
  }
  if (LandlockVersion() == 0) {
    missing.emplace_back(
        "this kernel has no Landlock (Linux 5.13, lsm=landlock), or forbids it: compilers, and kernels on the CPU, "
        "read "
        "any file that the daemon's user may");
  }
  return missing;
}

}  // namespace attune
