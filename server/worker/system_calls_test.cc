// A filter cannot be left again, so each test runs in a process of its own; each as root, if the tests are root's, and
// as another user.
#include "server/worker/system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "gtest/gtest.h"

namespace attune::worker {
namespace {

constexpr long kHighBits = 0x100000000;
constexpr uid_t kNobody = 65534;
constexpr int kDaemonFd = 100;  // where nothing is open

bool Refused(long result) { return result < 0 && errno == EPERM; }

template <typename... Arguments>
bool RefusesCall(long call, Arguments... arguments) {
  return Refused(syscall(call, arguments...));
}

// Says the line that a check failed in.
#define MUST(condition)                                       \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      _exit(1);                                               \
    }                                                         \
  } while (false)

enum class User { kThis, kNobody };

class SystemCallsTest : public ::testing::TestWithParam<User> {
 protected:
  // In the process under test.
  static void Become() {
    if (GetParam() == User::kNobody && geteuid() == 0) MUST(setresuid(kNobody, kNobody, kNobody) == 0);
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  }
};

// What neither a worker nor its kernels may do to anybody else.
void MustReachNobody() {
  const pid_t parent = getppid();
  for (const long high : {0L, kHighBits}) {
    for (const long family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_XDP, AF_VSOCK}) {
      MUST(RefusesCall(SYS_socket, high + family, SOCK_STREAM, 0));
    }
    MUST(RefusesCall(SYS_connect, high, nullptr, 0));
    MUST(RefusesCall(SYS_kill, high + parent, 0) && RefusesCall(SYS_kill, high + parent, SIGTERM));
    MUST(RefusesCall(SYS_kill, -1L, 0) && RefusesCall(SYS_kill, high, 0));
    MUST(RefusesCall(SYS_tgkill, high + parent, parent, 0) && RefusesCall(SYS_tkill, high + parent, 0));
    MUST(RefusesCall(SYS_rt_sigqueueinfo, high + parent, SIGTERM, nullptr));
    MUST(RefusesCall(SYS_pidfd_open, high + parent, 0) && RefusesCall(SYS_pidfd_getfd, high, 0, 0));
    MUST(RefusesCall(SYS_pidfd_send_signal, high, SIGTERM, nullptr, 0));
    MUST(RefusesCall(SYS_process_vm_readv, high + parent, nullptr, 0, nullptr, 0, 0));
    MUST(RefusesCall(SYS_process_vm_writev, high + parent, nullptr, 0, nullptr, 0, 0));
    MUST(RefusesCall(SYS_process_madvise, high, nullptr, 0, 0, 0));
    MUST(RefusesCall(SYS_ptrace, high + 16 /* PTRACE_ATTACH */, parent, 0, 0));
    MUST(RefusesCall(SYS_prlimit64, high + parent, RLIMIT_NOFILE, nullptr, nullptr));
    MUST(RefusesCall(SYS_setpriority, high + PRIO_PROCESS, parent, 10));
    MUST(RefusesCall(SYS_sched_setaffinity, high + parent, 0, nullptr));
    MUST(RefusesCall(SYS_sched_setscheduler, high + parent, 0, nullptr));
    MUST(RefusesCall(SYS_move_pages, high + parent, 0L, nullptr, nullptr, nullptr, 0));
    MUST(RefusesCall(SYS_clone, high | CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0));
    MUST(RefusesCall(SYS_clone, high | CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
    MUST(RefusesCall(SYS_fcntl, STDIN_FILENO, high + F_SETOWN, parent));
    MUST(RefusesCall(SYS_fcntl, STDIN_FILENO, high + F_SETSIG, SIGKILL));
    MUST(RefusesCall(SYS_ioctl, STDIN_FILENO, high + FIOASYNC, nullptr));
    MUST(RefusesCall(SYS_ioctl, STDIN_FILENO, high + TIOCSTI, nullptr));
    MUST(RefusesCall(SYS_prctl, high + PR_SET_DUMPABLE, 1, 0, 0, 0));
    MUST(RefusesCall(SYS_prctl, high + PR_SET_PDEATHSIG, 0, 0, 0, 0));
  }
  // libc goes on with clone.
  MUST(syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS);
  MUST(RefusesCall(SYS_setsid) && RefusesCall(SYS_setpgid, 0, 0) && RefusesCall(SYS_unshare, CLONE_NEWUSER));
  MUST(RefusesCall(SYS_setns, 0, 0) && RefusesCall(SYS_chroot, "/") && RefusesCall(SYS_mount, 0, 0, 0, 0, 0));
  MUST(RefusesCall(SYS_memfd_create, "m", 0) && RefusesCall(SYS_execveat, 0, "", nullptr, nullptr, AT_EMPTY_PATH));
  MUST(RefusesCall(SYS_io_uring_setup, 1, nullptr) && RefusesCall(SYS_bpf, 0, nullptr, 0));
  MUST(RefusesCall(SYS_userfaultfd, 0) && RefusesCall(SYS_perf_event_open, nullptr, 0, 0, 0, 0));
  MUST(RefusesCall(SYS_keyctl, 0, 0, 0, 0, 0) && RefusesCall(SYS_open_by_handle_at, 0, nullptr, 0));
  MUST(RefusesCall(SYS_setuid, 0) && RefusesCall(SYS_personality, 0xffffffff) && RefusesCall(SYS_modify_ldt, 0, 0, 0));
  MUST(RefusesCall(SYS_mknod, "/tmp/node", 0020666, 0x103) && RefusesCall(SYS_symlink, "/etc", "/tmp/etc"));
  MUST(RefusesCall(SYS_kcmp, 0, 0, 0, 0, 0) && RefusesCall(SYS_seccomp, 0, 0, nullptr));
  MUST(RefusesCall(SYS_landlock_create_ruleset, nullptr, 0, 1) && RefusesCall(SYS_setrlimit, RLIMIT_AS, nullptr));
  MUST(RefusesCall(SYS_shmget, 0, 4096, 0600) && RefusesCall(SYS_mq_open, "/q", O_CREAT, 0600, nullptr));
  MUST(RefusesCall(SYS_inotify_init1, 0) && RefusesCall(SYS_eventfd2, 0, 0) && RefusesCall(SYS_sendmsg, 3, 0, 0));
}

TEST_P(SystemCallsTest, AWorkerReachesNobody) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfWorker().ok());
        MustReachNobody();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(SystemCallsTest, AKernelReachesNobody) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfKernels(kDaemonFd).ok());
        MustReachNobody();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(SystemCallsTest, AWorkerStartsThreadsAndPrograms) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfWorker().ok());
        bool ran = false;
        std::thread([&ran] { ran = true; }).join();
        MUST(ran && system("exit 5") == 5 << 8);
        rlimit limit = {};
        MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0 && kill(getpid(), 0) == 0);
        abort();
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

TEST_P(SystemCallsTest, AWorkersChildrenAreAsFree) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfWorker().ok());
        const pid_t child = fork();
        if (child == 0) _exit(RefusesCall(SYS_socket, AF_INET, SOCK_STREAM, 0) && Refused(setsid()) ? 0 : 1);
        int status = -1;
        MUST(waitpid(child, &status, 0) == child && status == 0);
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

void* Mark(void* ran) {
  *static_cast<bool*>(ran) = true;
  return nullptr;
}

TEST_P(SystemCallsTest, AKernelStartsThreadsAndNoProcess) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfKernels(kDaemonFd).ok());
        bool ran = false;
        // By pthread_create: what a sanitizer looks into of a std::thread takes a pipe.
        pthread_t thread;
        MUST(pthread_create(&thread, nullptr, &Mark, &ran) == 0 && pthread_join(thread, nullptr) == 0 && ran);
        for (const long high : {0L, kHighBits}) {
          MUST(RefusesCall(SYS_clone, high | SIGCHLD, 0, 0, 0, 0));
          MUST(RefusesCall(SYS_clone, high | CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0));
        }
        MUST(RefusesCall(SYS_fork) && RefusesCall(SYS_vfork) && RefusesCall(SYS_execve, "/bin/true", nullptr, nullptr));
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

// The daemon reads the other end.
TEST_P(SystemCallsTest, AKernelAnswersNobodyInItsWorkersPlace) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const int fd = ends[1];
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfKernels(fd).ok());
        char byte = 0;
        for (const long high : {0L, kHighBits}) {
          MUST(RefusesCall(SYS_write, high + fd, &byte, 1) && RefusesCall(SYS_read, high + fd, &byte, 1));
          MUST(RefusesCall(SYS_sendto, high + fd, &byte, 1, 0, nullptr, 0) && RefusesCall(SYS_close, high + fd));
          MUST(RefusesCall(SYS_recvfrom, high + fd, &byte, 1, 0, nullptr, nullptr) && RefusesCall(SYS_dup, high + fd));
          MUST(RefusesCall(SYS_writev, high + fd, nullptr, 0) && RefusesCall(SYS_pwrite64, high + fd, &byte, 1, 0));
          MUST(RefusesCall(SYS_fcntl, high + fd, high + F_DUPFD, 10) && RefusesCall(SYS_shutdown, high + fd, 2));
          MUST(RefusesCall(SYS_dup3, high + fd, 10, 0) && RefusesCall(SYS_sendfile, high + fd, 0, 0, 1));
          MUST(RefusesCall(SYS_splice, 0, 0, high + fd, 0, 1, 0) && RefusesCall(SYS_dup2, 0, high + fd));
          MUST(RefusesCall(SYS_close_range, high + fd, fd, 0) &&
               RefusesCall(SYS_fcntl, fd, high + F_SETFL, O_NONBLOCK));
        }
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(recv(ends[0], ends, 1, MSG_DONTWAIT), -1);
  close(ends[0]);
  close(ends[1]);
}

TEST_P(SystemCallsTest, AKernelReadsFilesAndWritesNone) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfKernels(kDaemonFd).ok());
        const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        char byte = 0;
        MUST(fd >= 0 && read(fd, &byte, 1) == 1 && close(fd) == 0);
        for (const long high : {0L, kHighBits}) {
          for (const int flags : {O_WRONLY, O_RDWR, O_RDONLY | O_CREAT, O_RDONLY | O_TRUNC, O_TMPFILE | O_RDWR}) {
            MUST(RefusesCall(SYS_openat, AT_FDCWD, "/tmp", high | flags, 0600));
            MUST(RefusesCall(SYS_open, "/tmp", high | flags, 0600));
          }
        }
        MUST(RefusesCall(SYS_unlink, "/tmp/x") && RefusesCall(SYS_rename, "/tmp/x", "/tmp/y"));
        MUST(RefusesCall(SYS_creat, "/tmp/x", 0600) && RefusesCall(SYS_truncate, "/tmp/x", 0));
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

// The limit of memory counts what is private.
TEST_P(SystemCallsTest, AKernelSharesNoMemory) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfKernels(kDaemonFd).ok());
        constexpr int kAccess = PROT_READ | PROT_WRITE;
        MUST(mmap(nullptr, 4096, kAccess, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
        for (const long high : {0L, kHighBits}) {
          for (const long type : {MAP_SHARED, MAP_SHARED_VALIDATE}) {
            MUST(RefusesCall(SYS_mmap, nullptr, 4096, kAccess, high | type | MAP_ANONYMOUS, -1, 0));
          }
        }
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(SystemCallsTest, AKernelLeavesLocksAlone) {
  EXPECT_EXIT(
      {
        Become();
        const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, kFirstKept);
        MUST(kept >= kFirstKept && AllowCallsOfKernels(kDaemonFd).ok());
        MUST(RefusesCall(SYS_close, kept) && RefusesCall(SYS_close, kHighBits + kept));
        MUST(RefusesCall(SYS_close, kHighBits + STDERR_FILENO) && RefusesCall(SYS_close, STDERR_FILENO));
        MUST(RefusesCall(SYS_flock, kept, 0) && RefusesCall(SYS_fcntl, kept, F_SETLK, nullptr));
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

// What ends a worker without a fault of its own is tried again; a kernel cannot feign that.
TEST_P(SystemCallsTest, AKernelEndsItsWorkerByAFaultAlone) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfKernels(kDaemonFd).ok());
        for (const int signal : {SIGKILL, SIGTERM, SIGSTOP}) {
          MUST(RefusesCall(SYS_kill, getpid(), signal) && RefusesCall(SYS_tgkill, getpid(), gettid(), signal));
        }
        abort();
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

#ifdef __x86_64__
TEST_P(SystemCallsTest, CallsOfAnotherArchitectureKill) {
  EXPECT_EXIT(
      {
        Become();
        MUST(AllowCallsOfKernels(kDaemonFd).ok());
        syscall(0x40000000 | SYS_getpid);  // x32
        _exit(0);
      },
      ::testing::KilledBySignal(SIGSYS), "");
}
#endif

INSTANTIATE_TEST_SUITE_P(AsEither, SystemCallsTest, ::testing::Values(User::kThis, User::kNobody),
                         [](const auto& info) { return info.param == User::kThis ? "This" : "Nobody"; });

}  // namespace
}  // namespace attune::worker
