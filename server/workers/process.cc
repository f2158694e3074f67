#include "server/workers/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace attune::workers {
namespace {

constexpr int kChildFd = 3;

// What posix_spawn does in the child, undone when it goes out of scope.
class SpawnPlan {
 public:
  explicit SpawnPlan(int child_fd) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, child_fd, kChildFd);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kChildFd + 1);

    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int Spawn(pid_t* pid, const std::string& executable, const std::vector<std::string>& arguments) {
    std::vector<char*> argv = {const_cast<char*>(executable.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    return posix_spawn(pid, executable.c_str(), &actions_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Process::Exit Describe(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    return {signal, 0,
            name == nullptr ? absl::StrCat("killed by signal ", signal) : absl::StrCat("killed by SIG", name)};
  }
  return {0, WEXITSTATUS(status), absl::StrCat("exited with ", WEXITSTATUS(status))};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Spawn(const std::string& executable,
                                                        const std::vector<std::string>& arguments) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return absl::ErrnoToStatus(errno, "socketpair");
  pid_t pid = 0;
  const int error = SpawnPlan(sockets[1]).Spawn(&pid, executable, arguments);
  close(sockets[1]);
  if (error != 0) {
    close(sockets[0]);
    return absl::UnavailableError(absl::StrCat("cannot start '", executable, "': ", strerror(error)));
  }
  const int pid_fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) {
    const int pidfd_error = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    close(sockets[0]);
    return absl::ErrnoToStatus(pidfd_error, "pidfd_open (Linux 5.3 or later is needed)");
  }
  return std::unique_ptr<Process>(new Process(pid, pid_fd, sockets[0]));
}

Process::~Process() {
  Kill();
  Wait(kNever);
  close(pid_fd_);
  close(fd_);
}

void Process::Kill() {
  std::lock_guard lock(mutex_);
  if (!exit_) kill(-pid_, SIGKILL);
}

std::optional<Process::Exit> Process::Wait(Deadline deadline) {
  {
    std::lock_guard lock(mutex_);
    if (exit_) return exit_;
  }
  pollfd entry = {pid_fd_, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, PollTimeout(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return std::nullopt;
  std::lock_guard lock(mutex_);
  // What it started dies with it; the group is still its own because the leader is not reaped yet.
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_ = Describe(status);
  return exit_;
}

}  // namespace attune::workers
