// SIGTERM, SIGINT and SIGHUP drain the daemon; a second one, or a drain that takes too long, ends it at once.
//
// SIGHUP is no request to reload, because there is nothing that could be: it comes when a terminal is closed, and a
// daemon without one would keep its port and its data directory. Where it is ignored (nohup), it stays so.
#ifndef ATTUNE_SERVER_DAEMON_SHUTDOWN_SIGNALS_H_
#define ATTUNE_SERVER_DAEMON_SHUTDOWN_SIGNALS_H_

#include <signal.h>

#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace attune {

class ShutdownSignals {
 public:
  // Blocks them in this thread and those to come: construct it before any other thread runs.
  ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

  // From now on, and for the life of the process, a signal ends it: at once before Serving, otherwise `limit` after it
  // at the latest. What is committed stays, however the process ends.
  void Watch(absl::Duration limit);
  // What a signal ends is worth draining. By one thread; may be said again.
  void Serving();
  // Blocks until one arrives; its name, as "SIGTERM".
  std::string Wait();
  // Blocks for as long at most; whether one has arrived.
  bool WaitFor(absl::Duration time);

 private:
  void Run(absl::Duration limit);

  sigset_t set_;
  absl::Notification serving_;
  absl::Notification arrived_;
  std::string name_;  // set before arrived_
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_SHUTDOWN_SIGNALS_H_
