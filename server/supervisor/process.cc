#include "server/supervisor/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::supervisor {
namespace {

constexpr int kChildFd = 3;

class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  // Takes over `fd` under a number above those that the child gets, so that no copy takes another's place.
  absl::Status Set(int fd) {
    fd_ = fcntl(fd, F_DUPFD_CLOEXEC, kChildFd + 1);
    const int error = errno;
    close(fd);
    return fd_ >= 0 ? absl::OkStatus() : absl::ErrnoToStatus(error, "fcntl");
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

absl::Status Set(const int (&fds)[2], Descriptor& first, Descriptor& second) {
  const absl::Status status = first.Set(fds[0]);
  const absl::Status other = second.Set(fds[1]);
  return status.ok() ? other : status;
}

absl::Status MakeSockets(Descriptor& ours, Descriptor& theirs) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return absl::ErrnoToStatus(errno, "socketpair");
  return Set(fds, ours, theirs);
}

absl::Status MakePipe(Descriptor& reading, Descriptor& writing) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  return Set(fds, reading, writing);
}

// What posix_spawn does in the child, undone when it goes out of scope.
class SpawnPlan {
 public:
  SpawnPlan(int child_fd, int output_fd) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, output_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output_fd, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, child_fd, kChildFd);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
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

  int Spawn(pid_t* pid, const std::string& executable, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment) {
    std::vector<char*> argv = Pointers(arguments);
    argv.insert(argv.begin(), const_cast<char*>(executable.c_str()));
    return posix_spawn(pid, executable.c_str(), &actions_, &attributes_, argv.data(), Pointers(environment).data());
  }

 private:
  // With a null pointer at the end, as exec takes them.
  static std::vector<char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Process::Exit Describe(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    return {signal, 0, false,
            name == nullptr ? absl::StrCat("killed by signal ", signal) : absl::StrCat("killed by SIG", name)};
  }
  return {0, WEXITSTATUS(status), false, absl::StrCat("exited with ", WEXITSTATUS(status))};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Spawn(const std::string& executable,
                                                        const std::vector<std::string>& arguments, LineSink output,
                                                        Ended ended, Environment environment) {
  Descriptor ours, theirs, output_end, their_output;
  if (absl::Status status = MakeSockets(ours, theirs); !status.ok()) return status;
  if (absl::Status status = MakePipe(output_end, their_output); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<OutputReader>> reader = OutputReader::Start(output_end.Release(), std::move(output));
  if (!reader.ok()) return reader.status();
  pid_t pid = 0;
  const int error =
      SpawnPlan(theirs.get(), their_output.get()).Spawn(&pid, executable, arguments, Variables(environment));
  if (error != 0) return absl::UnavailableError(absl::StrCat("cannot start '", executable, "': ", strerror(error)));
  std::unique_ptr<Process> process(new Process(pid, ours.Release(), *std::move(reader), std::move(ended)));
  process->watcher_ = std::thread(&Process::Watch, process.get());
  return process;
}

Process::~Process() {
  Kill();
  watcher_.join();
  close(fd_);
}

void Process::Kill() {
  std::lock_guard lock(mutex_);
  if (!exit_) kill(-pid_, SIGKILL);
}

std::optional<Process::Exit> Process::Wait(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return exit_.has_value(); };
  if (deadline == kNever) {
    ended_.wait(lock, ended);
  } else {
    ended_.wait_until(lock, deadline, ended);
  }
  return exit_;
}

void Process::Watch() {
  while (true) {
    // Looked at but not taken: the pid stays the process's own until it is reaped below.
    siginfo_t change = {};
    if (waitid(P_PID, static_cast<id_t>(pid_), &change, WEXITED | WSTOPPED | WCONTINUED | WNOWAIT) != 0 &&
        errno == EINTR) {
      continue;
    }
    std::unique_lock lock(mutex_);
    // An ended process's group dies too; it is still its own because the leader is not reaped yet.
    kill(-pid_, SIGKILL);
    if (change.si_code == CLD_STOPPED || change.si_code == CLD_CONTINUED) {
      stopped_ = true;
      waitid(P_PID, static_cast<id_t>(pid_), &change, WSTOPPED | WCONTINUED | WNOHANG);
      continue;
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    exit_ = Describe(status);
    if (stopped_) {
      exit_->stopped = true;
      exit_->reason = "stopped by a signal";
    }
    ended_.notify_all();
    lock.unlock();
    if (on_end_) on_end_(pid_, *exit_);
    return;
  }
}

}  // namespace attune::supervisor
