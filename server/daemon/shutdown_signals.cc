#include "server/daemon/shutdown_signals.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"

namespace attune {

ShutdownSignals::ShutdownSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  struct sigaction hang_up = {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void ShutdownSignals::Watch(absl::Duration limit) {
  std::thread([this, limit] { Run(limit); }).detach();
}

void ShutdownSignals::Serving() {
  if (!serving_.HasBeenNotified()) serving_.Notify();
}

bool ShutdownSignals::WaitFor(absl::Duration time) { return arrived_.WaitForNotificationWithTimeout(time); }

std::string ShutdownSignals::Wait() {
  arrived_.WaitForNotification();
  return name_;
}

void ShutdownSignals::Run(absl::Duration limit) {
  int signal = 0;
  while (sigwait(&set_, &signal) != 0) {
  }
  name_ = absl::StrCat("SIG", sigabbrev_np(signal));
  if (!serving_.HasBeenNotified()) {
    LogInfo("stopped while starting", {{"signal", name_}});
    _exit(0);
  }
  arrived_.Notify();
  const timespec time = absl::ToTimespec(limit);
  int second = 0;
  do {
    second = sigtimedwait(&set_, nullptr, &time);
  } while (second < 0 && errno == EINTR);
  if (second > 0) {
    LogWarning("stopped at once", {{"signal", absl::StrCat("SIG", sigabbrev_np(second))}});
  } else {
    LogError("stopped at once, draining takes too long", {{"limit", absl::FormatDuration(limit)}});
  }
  _exit(1);
}

}  // namespace attune
