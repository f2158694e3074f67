// A child process on the other end of a socket.
//
// It is exec'd in a process group of its own with nothing inherited but standard error and, as descriptor 3, its end
// of the socket. Nothing runs between fork and exec, so that a program with threads may spawn.
#ifndef ATTUNE_SERVER_WORKERS_PROCESS_H_
#define ATTUNE_SERVER_WORKERS_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/workers/deadline.h"

namespace attune::workers {

class Process {
 public:
  // `arguments` without the program's name. Unavailable with the executable's path when it cannot be started.
  static absl::StatusOr<std::unique_ptr<Process>> Spawn(const std::string& executable,
                                                        const std::vector<std::string>& arguments);
  // Kills it and waits until it is gone.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }

  // SIGKILL to the whole group. Any thread may call it; harmless once the process is gone.
  void Kill();

  struct Exit {
    int signal = 0;      // that killed it, or 0
    int code = 0;        // it exited with
    std::string reason;  // "killed by SIGSEGV", "exited with 3"
  };
  // How the process ended, and it is reaped; nothing when it has not ended by `deadline`. One thread at a time.
  std::optional<Exit> Wait(Deadline deadline);

 private:
  Process(pid_t pid, int pid_fd, int fd) : pid_(pid), pid_fd_(pid_fd), fd_(fd) {}

  const pid_t pid_;
  const int pid_fd_;  // readable once the process has ended
  const int fd_;
  std::mutex mutex_;          // guards exit_, and killing against reaping
  std::optional<Exit> exit_;  // set: reaped, and the pid may be somebody else's
};

}  // namespace attune::workers

#endif  // ATTUNE_SERVER_WORKERS_PROCESS_H_
