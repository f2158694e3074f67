// The sandbox cannot be left again, so each test runs in a process of its own.
#include "server/worker/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
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

bool Denied(long result) { return result < 0 && errno == EPERM; }

TEST(Sandbox, DeniesTheNetworkButNotLocalSockets) {
  EXPECT_EXIT(
      {
        bool right = DenySystemCalls().ok();
        right = right && Denied(socket(AF_INET, SOCK_STREAM, 0)) && Denied(socket(AF_INET6, SOCK_DGRAM, 0));
        int fds[2];
        right = right && socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// socket() takes an int: what stands in the upper half of the register does not count.
TEST(Sandbox, DeniesTheNetworkWhateverTheUpperHalfOfTheArgument) {
  EXPECT_EXIT(
      {
        bool right = DenySystemCalls().ok();
        for (long family : {AF_INET, AF_INET6, AF_PACKET, AF_XDP}) {
          right = right && Denied(syscall(SYS_socket, 0x100000000 + family, SOCK_STREAM, 0));
        }
        right = right && syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0) >= 0;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Sandbox, SignalsNobodyButItself) {
  EXPECT_EXIT(
      {
        bool right = DenySystemCalls().ok();
        right = right && Denied(kill(getppid(), 0)) && Denied(kill(-1, 0)) && Denied(kill(0, 0));
        right = right && Denied(syscall(SYS_tgkill, getppid(), getppid(), 0));
        right = right && Denied(syscall(SYS_tkill, getppid(), 0));
        right = right && Denied(syscall(SYS_pidfd_send_signal, 0, 0, nullptr, 0));
        right = right && kill(getpid(), 0) == 0;
        if (!right) _exit(1);
        abort();
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

TEST(Sandbox, ReachesIntoNoOtherProcess) {
  EXPECT_EXIT(
      {
        bool right = DenySystemCalls().ok();
        rlimit limit = {};
        right = right && Denied(prlimit(getppid(), RLIMIT_NOFILE, nullptr, &limit));
        right = right && getrlimit(RLIMIT_NOFILE, &limit) == 0;
        right = right && Denied(syscall(SYS_pidfd_getfd, 0, 0, 0));
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Sandbox, NoChildLeavesTheProcessGroup) {
  EXPECT_EXIT(
      {
        const bool right = DenySystemCalls().ok();
        const pid_t child = fork();
        if (child == 0) _exit(Denied(setsid()) && Denied(setpgid(0, 0)) ? 0 : 1);
        int status = -1;
        waitpid(child, &status, 0);
        _exit(right && status == 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// What a tool starts cannot leave its process group either, though it is told so.
TEST(SandboxOfTools, KeepsChildrenInTheProcessGroup) {
  EXPECT_EXIT(
      {
        const bool right = HardenProcess().ok() && DenySystemCallsOfTools().ok();
        const pid_t group = getpgrp();
        const pid_t child = fork();
        if (child == 0) _exit(setsid() == 0 && setpgid(0, 0) == 0 && getpgrp() == group ? 0 : 1);
        int status = -1;
        waitpid(child, &status, 0);
        _exit(right && status == 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(SandboxOfTools, AllowsTheNetworkAndTracingButNoKernelInterfaces) {
  EXPECT_EXIT(
      {
        bool right = HardenProcess().ok() && DenySystemCallsOfTools().ok();
        right = right && socket(AF_INET, SOCK_STREAM, 0) >= 0;
        right = right && Denied(syscall(SYS_bpf, 0, nullptr, 0)) && Denied(syscall(SYS_unshare, 0));
        const pid_t child = fork();
        if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
        int status = -1;
        waitpid(child, &status, 0);
        _exit(right && status == 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Sandbox, DeniesTracingKeysAndKernelInterfaces) {
  EXPECT_EXIT(
      {
        bool right = DenySystemCalls().ok();
        right = right && Denied(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
        right = right && Denied(syscall(SYS_keyctl, 0, 0, 0, 0, 0)) && Denied(syscall(SYS_bpf, 0, nullptr, 0));
        right = right && Denied(syscall(SYS_unshare, 0)) && Denied(syscall(SYS_userfaultfd, 0));
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Sandbox, LetsThreadsAndOtherProgramsRun) {
  EXPECT_EXIT(
      {
        bool right = HardenProcess().ok() && DenySystemCalls().ok();
        std::thread([] {}).join();
        right = right && system("exit 5") == 5 << 8;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(HardenProcess, GainsNoPrivilegesCannotBeTracedAndDumpsNoCore) {
  EXPECT_EXIT(
      {
        bool right = HardenProcess().ok();
        right = right && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
        int signal = 0;
        right = right && prctl(PR_GET_PDEATHSIG, &signal, 0, 0, 0) == 0 && signal == SIGKILL;
        rlimit core = {};
        core.rlim_max = 1;
        right = right && getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attune::worker
