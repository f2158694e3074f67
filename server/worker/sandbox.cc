#include "server/worker/sandbox.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace attune::worker {
namespace {

constexpr int kDenied[] = {SCMP_SYS(mount),
                           SCMP_SYS(umount2),
                           SCMP_SYS(pivot_root),
                           SCMP_SYS(chroot),
                           SCMP_SYS(fsopen),
                           SCMP_SYS(fsmount),
                           SCMP_SYS(move_mount),
                           SCMP_SYS(open_tree),
                           SCMP_SYS(setns),
                           SCMP_SYS(unshare),
                           SCMP_SYS(reboot),
                           SCMP_SYS(swapon),
                           SCMP_SYS(swapoff),
                           SCMP_SYS(kexec_load),
                           SCMP_SYS(kexec_file_load),
                           SCMP_SYS(init_module),
                           SCMP_SYS(finit_module),
                           SCMP_SYS(delete_module),
                           SCMP_SYS(keyctl),
                           SCMP_SYS(add_key),
                           SCMP_SYS(request_key),
                           SCMP_SYS(bpf),
                           SCMP_SYS(userfaultfd),
                           SCMP_SYS(acct),
                           SCMP_SYS(quotactl),
                           SCMP_SYS(settimeofday),
                           SCMP_SYS(clock_settime),
                           SCMP_SYS(clock_adjtime),
                           SCMP_SYS(adjtimex),
                           SCMP_SYS(sethostname),
                           SCMP_SYS(setdomainname),
                           SCMP_SYS(open_by_handle_at),
                           SCMP_SYS(name_to_handle_at),
                           SCMP_SYS(syslog),
                           SCMP_SYS(vhangup),
                           SCMP_SYS(io_uring_setup),
                           SCMP_SYS(iopl),
                           SCMP_SYS(ioperm)};

// Of no use to who looks into no other process.
constexpr int kDeniedToWorkers[] = {SCMP_SYS(ptrace),         SCMP_SYS(process_vm_readv),  SCMP_SYS(process_vm_writev),
                                    SCMP_SYS(pidfd_getfd),    SCMP_SYS(pidfd_send_signal), SCMP_SYS(tkill),
                                    SCMP_SYS(setsid),         SCMP_SYS(setpgid),           SCMP_SYS(kcmp),
                                    SCMP_SYS(perf_event_open)};

// All but these are denied, those of later kernels included. Drivers speak netlink.
constexpr int kAllowedSocketFamilies[] = {AF_UNIX, AF_NETLINK};
constexpr int kSocketFamilies = 64;

// Take the target's process id first.
constexpr int kSignals[] = {SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo)};

struct ReleaseFilter {
  void operator()(void* filter) const { seccomp_release(filter); }
};

// libseccomp returns negative errno values.
absl::Status FilterError(int result, const char* call) { return absl::ErrnoToStatus(-result, call); }

// The calls do nothing, and return `error`.
absl::Status Answer(void* filter, absl::Span<const int> calls, uint32_t error) {
  for (const int call : calls) {
    const int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), call, 0);
    if (result != 0) return FilterError(result, "seccomp_rule_add");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status HardenProcess() {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return absl::ErrnoToStatus(errno, "PR_SET_PDEATHSIG");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return absl::ErrnoToStatus(errno, "PR_SET_NO_NEW_PRIVS");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return absl::ErrnoToStatus(errno, "PR_SET_DUMPABLE");
  const rlimit no_core = {0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) return absl::ErrnoToStatus(errno, "RLIMIT_CORE");
  return absl::OkStatus();
}

absl::Status DenySystemCalls() {
  const std::unique_ptr<void, ReleaseFilter> filter(seccomp_init(SCMP_ACT_ALLOW));
  if (filter == nullptr) return absl::InternalError("seccomp_init has failed");
  for (const absl::Span<const int> calls : {absl::MakeConstSpan(kDenied), absl::MakeConstSpan(kDeniedToWorkers)}) {
    if (absl::Status status = Answer(filter.get(), calls, EPERM); !status.ok()) return status;
  }
  for (int family = 0; family < kSocketFamilies; ++family) {
    if (std::find(std::begin(kAllowedSocketFamilies), std::end(kAllowedSocketFamilies), family) !=
        std::end(kAllowedSocketFamilies)) {
      continue;
    }
    // The kernel takes the lower 32 bits of the argument; the filter sees all 64.
    const int result = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                        SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, static_cast<scmp_datum_t>(family)));
    if (result != 0) return FilterError(result, "seccomp_rule_add");
  }
  const auto self = static_cast<scmp_datum_t>(getpid());
  for (int call : kSignals) {
    const int result = seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 1, SCMP_A0(SCMP_CMP_NE, self, 0));
    if (result != 0) return FilterError(result, "seccomp_rule_add");
  }
  // Process 0 is the caller.
  const int limits =
      seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_NE, 0, 0));
  if (limits != 0) return FilterError(limits, "seccomp_rule_add");
  const int result = seccomp_load(filter.get());
  return result == 0 ? absl::OkStatus() : FilterError(result, "seccomp_load");
}

absl::Status DenySystemCallsOfTools() {
  const std::unique_ptr<void, ReleaseFilter> filter(seccomp_init(SCMP_ACT_ALLOW));
  if (filter == nullptr) return absl::InternalError("seccomp_init has failed");
  if (absl::Status status = Answer(filter.get(), kDenied, EPERM); !status.ok()) return status;
  constexpr int kLeaving[] = {SCMP_SYS(setsid), SCMP_SYS(setpgid)};
  if (absl::Status status = Answer(filter.get(), kLeaving, 0); !status.ok()) return status;
  const int result = seccomp_load(filter.get());
  return result == 0 ? absl::OkStatus() : FilterError(result, "seccomp_load");
}

}  // namespace attune::worker
