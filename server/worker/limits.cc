#include "server/worker/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace attune::worker {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

int64_t HostMemory() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

absl::Status Limit(int resource, int64_t most, const char* name) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return absl::ErrnoToStatus(errno, name);
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(most));
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return absl::ErrnoToStatus(errno, name);
  return absl::OkStatus();
}

// As far as the system lets it: raising it needs no privilege.
void OfferToOomKiller() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = write(fd, "500", 3);
  close(fd);
}

}  // namespace

Limits LimitsOfCompiler() { return {std::min(8 * kGiB, HostMemory()), kGiB, 1024}; }

Limits LimitsOfDevice() { return {HostMemory(), kGiB, 1024}; }

absl::Status LimitResources(const Limits& limits) {
  OfferToOomKiller();
  if (!kSanitized) {
    if (absl::Status status = Limit(RLIMIT_DATA, limits.memory_bytes, "RLIMIT_DATA"); !status.ok()) return status;
  }
  if (absl::Status status = Limit(RLIMIT_FSIZE, limits.file_bytes, "RLIMIT_FSIZE"); !status.ok()) return status;
  if (absl::Status status = Limit(RLIMIT_NOFILE, limits.open_files, "RLIMIT_NOFILE"); !status.ok()) return status;
  for (int resource : {RLIMIT_CORE, RLIMIT_MSGQUEUE, RLIMIT_RTPRIO, RLIMIT_MEMLOCK}) {
    if (absl::Status status = Limit(resource, 0, "setrlimit"); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DropCapabilities() {
  // The bounding set bars what an exec would give back; a user without CAP_SETPCAP has nothing to be given.
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM) {
      return absl::ErrnoToStatus(errno, "PR_CAPBSET_DROP");
    }
  }
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    return absl::ErrnoToStatus(errno, "PR_CAP_AMBIENT");
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) != 0) return absl::ErrnoToStatus(errno, "capset");
  return absl::OkStatus();
}

}  // namespace attune::worker
