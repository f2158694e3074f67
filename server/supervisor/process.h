// A child process on the other end of a socket.
//
// It is exec'd in a process group of its own with nothing inherited but, as descriptor 3, its end of the socket. What
// it writes to standard output and error comes back in lines. Nothing runs between fork and exec, so that a program
// with threads may spawn.
//
// A thread for each process waits for what becomes of it: one that ends is reaped at once, used or not, and one that
// somebody stops (SIGSTOP) is killed at once. A stopped worker answers nobody, holds its device, and what it was timing
// is of no use even when it goes on.
#ifndef ATTUNE_SERVER_SUPERVISOR_PROCESS_H_
#define ATTUNE_SERVER_SUPERVISOR_PROCESS_H_

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/deadline.h"
#include "server/supervisor/environment.h"
#include "server/supervisor/output_reader.h"

namespace attune::supervisor {

class Process {
 public:
  struct Exit {
    int signal = 0;        // that killed it, or 0
    int code = 0;          // it exited with
    bool stopped = false;  // it was stopped, and killed for that
    std::string reason;    // "killed by SIGSEGV", "exited with 3", "stopped by a signal"
  };
  using Ended = std::function<void(pid_t pid, const Exit& exit)>;

  // `arguments` without the program's name. `output` is called on a thread of the process's own with the lines that it
  // and what it starts write, until it is destroyed; `ended`, which may be null, once, on another, when it has ended.
  // Unavailable with the executable's path when it cannot be started.
  static absl::StatusOr<std::unique_ptr<Process>> Spawn(const std::string& executable,
                                                        const std::vector<std::string>& arguments, LineSink output,
                                                        Ended ended = nullptr,
                                                        Environment environment = Environment::kInherited);
  // Kills it and waits until it is gone and `ended` has returned.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }

  // SIGKILL to the whole group. Any thread may call it; harmless once the process is gone.
  void Kill();

  // How the process ended; it is reaped. Nothing when it has not ended by `deadline`. Any thread may call it.
  std::optional<Exit> Wait(Deadline deadline);

 private:
  Process(pid_t pid, int fd, std::unique_ptr<OutputReader> output, Ended ended)
      : pid_(pid), fd_(fd), output_(std::move(output)), on_end_(std::move(ended)) {}

  void Watch();

  const pid_t pid_;
  const int fd_;
  const std::unique_ptr<OutputReader> output_;
  const Ended on_end_;
  std::mutex mutex_;  // guards what follows, and killing against reaping
  std::condition_variable ended_;
  bool stopped_ = false;
  std::optional<Exit> exit_;  // set: reaped, and the pid may be somebody else's
  std::thread watcher_;       // runs Watch
};

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_PROCESS_H_
