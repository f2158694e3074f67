#include "server/worker/system_calls.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "absl/types/span.h"

namespace attune::worker {
namespace {

// Whatever their arguments are. None of them reaches another process.
constexpr int kMemory[] = {SCMP_SYS(brk),      SCMP_SYS(madvise), SCMP_SYS(membarrier), SCMP_SYS(mincore),
                           SCMP_SYS(mprotect), SCMP_SYS(mremap),  SCMP_SYS(munmap)};
constexpr int kThreads[] = {SCMP_SYS(exit),
                            SCMP_SYS(exit_group),
                            SCMP_SYS(futex),
                            SCMP_SYS(futex_waitv),
                            SCMP_SYS(get_robust_list),
                            SCMP_SYS(getcpu),
                            SCMP_SYS(gettid),
                            SCMP_SYS(restart_syscall),
                            SCMP_SYS(rseq),
                            SCMP_SYS(rt_sigaction),
                            SCMP_SYS(rt_sigprocmask),
                            SCMP_SYS(rt_sigreturn),
                            SCMP_SYS(sched_get_priority_max),
                            SCMP_SYS(sched_get_priority_min),
                            SCMP_SYS(sched_getaffinity),
                            SCMP_SYS(sched_getparam),
                            SCMP_SYS(sched_getscheduler),
                            SCMP_SYS(sched_yield),
                            SCMP_SYS(set_robust_list),
                            SCMP_SYS(set_tid_address),
                            SCMP_SYS(sigaltstack)};
constexpr int kQuestions[] = {
    SCMP_SYS(arch_prctl),    SCMP_SYS(clock_getres), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(get_mempolicy), SCMP_SYS(getcwd),       SCMP_SYS(getegid),       SCMP_SYS(geteuid),
    SCMP_SYS(getgid),        SCMP_SYS(getgroups),    SCMP_SYS(getpgrp),       SCMP_SYS(getpid),
    SCMP_SYS(getppid),       SCMP_SYS(getrandom),    SCMP_SYS(getresgid),     SCMP_SYS(getresuid),
    SCMP_SYS(getrlimit),     SCMP_SYS(getrusage),    SCMP_SYS(gettimeofday),  SCMP_SYS(getuid),
    SCMP_SYS(nanosleep),     SCMP_SYS(sysinfo),      SCMP_SYS(time),          SCMP_SYS(times),
    SCMP_SYS(uname)};
// Landlock says of which files. Folders may be made: PoCL makes sure of its own.
constexpr int kLooking[] = {SCMP_SYS(access),     SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(fadvise64),
                            SCMP_SYS(fstat),      SCMP_SYS(fstatfs),   SCMP_SYS(getdents),   SCMP_SYS(getdents64),
                            SCMP_SYS(lseek),      SCMP_SYS(lstat),     SCMP_SYS(mkdir),      SCMP_SYS(mkdirat),
                            SCMP_SYS(newfstatat), SCMP_SYS(poll),      SCMP_SYS(ppoll),      SCMP_SYS(readlink),
                            SCMP_SYS(readlinkat), SCMP_SYS(stat),      SCMP_SYS(statfs),     SCMP_SYS(statx)};
// A worker's own, not its kernels'. Of a file that is open to write, or in a folder that Landlock lets it write: no
// chmod and no truncate, since Landlock leaves modes alone, and lengths before its version 3.
constexpr int kFiles[] = {
    SCMP_SYS(mmap),   SCMP_SYS(chdir),     SCMP_SYS(close),     SCMP_SYS(close_range), SCMP_SYS(dup),
    SCMP_SYS(dup2),   SCMP_SYS(dup3),      SCMP_SYS(fallocate), SCMP_SYS(fdatasync),   SCMP_SYS(flock),
    SCMP_SYS(fsync),  SCMP_SYS(ftruncate), SCMP_SYS(pipe),      SCMP_SYS(pipe2),       SCMP_SYS(pread64),
    SCMP_SYS(preadv), SCMP_SYS(pwrite64),  SCMP_SYS(pwritev),   SCMP_SYS(read),        SCMP_SYS(readv),
    SCMP_SYS(rename), SCMP_SYS(renameat),  SCMP_SYS(renameat2), SCMP_SYS(rmdir),       SCMP_SYS(umask),
    SCMP_SYS(unlink), SCMP_SYS(unlinkat),  SCMP_SYS(write),     SCMP_SYS(writev)};
// Messages on the socket that there is; none can be made. With sendmsg a descriptor could leave.
constexpr int kConversation[] = {SCMP_SYS(recvfrom)};
// A linker: fork and vfork take no flags; Landlock says which programs.
constexpr int kProcesses[] = {SCMP_SYS(execve), SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(wait4), SCMP_SYS(waitid)};

// What the kernel reads of an argument that is an int.
constexpr scmp_datum_t kInt = 0xffffffff;

// Of clone's flags: other namespaces, a child that is not this process's but its parent's, or that cannot be traced.
constexpr uint64_t kCloneNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                      CLONE_NEWPID | CLONE_NEWNET | uint64_t{0x80} /* CLONE_NEWTIME */;
constexpr uint64_t kCloneRefused = kCloneNamespaces | CLONE_PARENT | CLONE_PTRACE | CLONE_UNTRACED | CLONE_PIDFD;

// Not F_SETOWN, F_SETSIG, F_SETLEASE and F_NOTIFY, which have somebody signalled.
constexpr int kFcntlOfWorker[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL,
                                  F_SETFL, F_GETLK,         F_SETLK, F_SETLKW};
constexpr int kFcntlOfKernels[] = {F_GETFD, F_SETFD, F_GETFL};
// Whether it is a terminal, and how much there is to read.
constexpr int kIoctl[] = {TCGETS, TIOCGWINSZ, FIONREAD};
constexpr int kPrctl[] = {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE, PR_CAPBSET_READ, PR_GET_NO_NEW_PRIVS};

// Opening to read. O_TMPFILE makes a file without O_CREAT.
constexpr scmp_datum_t kOpensToWrite = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);

// A filter in the making. The first rule that libseccomp refuses is what Load says.
class Filter {
 public:
  explicit Filter(uint32_t otherwise) : filter_(seccomp_init(otherwise)) {
    if (filter_ == nullptr) {
      result_ = -ENOMEM;
      return;
    }
    Keep(seccomp_attr_set(filter_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
  }

  // `calls` that this architecture does not have are nobody's.
  void Allow(absl::Span<const int> calls) {
    for (int call : calls) Rule(SCMP_ACT_ALLOW, call, {});
  }
  void AllowIf(int call, scmp_arg_cmp condition) { Rule(SCMP_ACT_ALLOW, call, {condition}); }
  void AllowIf(int call, scmp_arg_cmp one, scmp_arg_cmp two) { Rule(SCMP_ACT_ALLOW, call, {one, two}); }
  void AllowInts(int call, unsigned argument, absl::Span<const int> values) {
    for (int value : values) AllowIf(call, Is(argument, value));
  }
  void Refuse(int call, int error) { Rule(SCMP_ACT_ERRNO(static_cast<uint32_t>(error)), call, {}); }
  void RefuseInt(int call, unsigned argument, int value) { Rule(SCMP_ACT_ERRNO(EPERM), call, {Is(argument, value)}); }

  static scmp_arg_cmp Is(unsigned argument, int value) { return Masked(argument, kInt, static_cast<uint32_t>(value)); }
  // Of `mask`, these bits and no others.
  static scmp_arg_cmp Masked(unsigned argument, scmp_datum_t mask, scmp_datum_t bits) {
    return SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, bits);
  }
  // None of these bits.
  static scmp_arg_cmp Without(unsigned argument, scmp_datum_t bits) { return Masked(argument, bits, 0); }

  absl::Status Load() {
    if (result_ == 0) Keep(seccomp_load(filter_.get()));
    return result_ == 0 ? absl::OkStatus() : absl::ErrnoToStatus(-result_, "seccomp");
  }

 private:
  struct Release {
    void operator()(void* filter) const { seccomp_release(filter); }
  };

  void Rule(uint32_t action, int call, std::initializer_list<scmp_arg_cmp> conditions) {
    if (result_ != 0 || call < 0) return;
    Keep(seccomp_rule_add_array(filter_.get(), action, call, static_cast<unsigned>(conditions.size()),
                                conditions.begin()));
  }
  void Keep(int result) {
    if (result_ == 0) result_ = result;
  }

  const std::unique_ptr<void, Release> filter_;
  int result_ = 0;  // libseccomp's negative errno values
};

// What is the same for a worker and its kernels.
void AllowCommon(Filter& filter) {
  filter.Refuse(SCMP_SYS(clone3), ENOSYS);
  filter.Refuse(SCMP_SYS(openat2), ENOSYS);
  for (absl::Span<const int> calls : {absl::Span<const int>(kMemory), absl::Span<const int>(kThreads),
                                      absl::Span<const int>(kQuestions), absl::Span<const int>(kLooking)}) {
    filter.Allow(calls);
  }
  filter.AllowInts(SCMP_SYS(ioctl), 1, kIoctl);
  filter.AllowInts(SCMP_SYS(prctl), 0, kPrctl);
  // Process 0 is the caller: its limits, to read, and where its thread runs.
  filter.AllowIf(SCMP_SYS(prlimit64), Filter::Is(0, 0), SCMP_CMP64(2, SCMP_CMP_EQ, 0, 0));
  filter.AllowIf(SCMP_SYS(sched_setaffinity), Filter::Is(0, 0));
}

// Not O_TRUNC with O_RDONLY, which empties a file that Landlock, before its version 3, sees only read.
void AllowOpening(Filter& filter, int call, unsigned flags) {
  filter.AllowIf(call, Filter::Without(flags, O_TRUNC));
  for (const int access : {O_WRONLY, O_RDWR}) {
    filter.AllowIf(call, Filter::Masked(flags, O_ACCMODE, static_cast<scmp_datum_t>(access)));
  }
}

}  // namespace

absl::Status AllowCallsOfWorker() {
  Filter filter(SCMP_ACT_ERRNO(EPERM));
  AllowCommon(filter);
  filter.Allow(kFiles);
  filter.Allow(kConversation);
  filter.Allow(kProcesses);
  AllowOpening(filter, SCMP_SYS(openat), 2);
  AllowOpening(filter, SCMP_SYS(open), 1);
  filter.AllowIf(SCMP_SYS(clone), Filter::Without(0, kCloneRefused));
  filter.AllowIf(SCMP_SYS(sendto), SCMP_CMP64(4, SCMP_CMP_EQ, 0, 0));  // to the peer: no address
  filter.AllowInts(SCMP_SYS(fcntl), 1, kFcntlOfWorker);
  filter.AllowIf(SCMP_SYS(tgkill), Filter::Is(0, getpid()));
  filter.AllowIf(SCMP_SYS(kill), Filter::Is(0, getpid()));
  return filter.Load();
}

absl::Status AllowCallsOfKernels(int daemon_fd) {
  // First what the second filter could not let pass: loading it.
  Filter refused(SCMP_ACT_ALLOW);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, daemon_fd}) refused.RefuseInt(SCMP_SYS(close), 0, fd);
  refused.RefuseInt(SCMP_SYS(read), 0, daemon_fd);
  if (absl::Status status = refused.Load(); !status.ok()) return status;

  Filter filter(SCMP_ACT_ERRNO(EPERM));
  AllowCommon(filter);
  // A thread, with all that a thread shares: never a process.
  constexpr uint64_t kOfThreads = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  filter.AllowIf(SCMP_SYS(clone), SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, kOfThreads | kCloneRefused, kOfThreads));
  filter.AllowIf(SCMP_SYS(openat), Filter::Without(2, kOpensToWrite));
  filter.AllowIf(SCMP_SYS(open), Filter::Without(1, kOpensToWrite));
  for (int call : {SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(close)}) {
    filter.AllowIf(call, SCMP_CMP64(0, SCMP_CMP_LT, kFirstKept, 0));
  }
  filter.AllowInts(SCMP_SYS(write), 0, {{STDOUT_FILENO, STDERR_FILENO}});
  filter.AllowInts(SCMP_SYS(writev), 0, {{STDOUT_FILENO, STDERR_FILENO}});
  filter.AllowInts(SCMP_SYS(fcntl), 1, kFcntlOfKernels);
  // RLIMIT_DATA counts no memory that is shared.
  filter.AllowIf(SCMP_SYS(mmap), SCMP_CMP64(3, SCMP_CMP_MASKED_EQ, MAP_TYPE, MAP_PRIVATE));
  // abort(). Whatever else ends a worker by a signal that is no fault is not its kernel's doing.
  filter.AllowIf(SCMP_SYS(tgkill), Filter::Is(0, getpid()), Filter::Is(2, SIGABRT));
  return filter.Load();
}

}  // namespace attune::worker
