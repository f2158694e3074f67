// Tells systemd how the daemon is (sd_notify(3)), and that it still is (WatchdogSec=); nothing where nobody asked.
#ifndef ATTUNE_SERVER_DAEMON_SERVICE_MANAGER_H_
#define ATTUNE_SERVER_DAEMON_SERVICE_MANAGER_H_

#include <sys/types.h>

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attune {

// What NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID say.
struct ServiceManagerAddress {
  std::string socket;                              // a path, or @name in the abstract namespace; empty: none
  absl::Duration watchdog = absl::ZeroDuration();  // the longest silence; 0: any
};
ServiceManagerAddress ServiceManagerOf(const char* notify_socket, const char* watchdog_usec, const char* watchdog_pid,
                                       pid_t self);

// Thread-safe.
class ServiceManager {
 public:
  // With a watchdog, reports twice in its time from a thread of its own, until it is destroyed.
  explicit ServiceManager(ServiceManagerAddress address);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Calls are answered; `status` is a line for people (`systemctl status`). May be said again, with another one.
  void Ready(absl::string_view status);
  void Stopping(absl::string_view status);

 private:
  void Send(const std::string& state) const;

  const ServiceManagerAddress address_;
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watchdog_;
};

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_SERVICE_MANAGER_H_
