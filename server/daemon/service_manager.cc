#include "server/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attune {

ServiceManagerAddress ServiceManagerOf(const char* notify_socket, const char* watchdog_usec, const char* watchdog_pid,
                                       pid_t self) {
  ServiceManagerAddress address;
  if (notify_socket != nullptr && (notify_socket[0] == '/' || notify_socket[0] == '@')) address.socket = notify_socket;
  int64_t microseconds = 0;
  int64_t whose = self;
  const bool ours = watchdog_pid == nullptr || (absl::SimpleAtoi(watchdog_pid, &whose) && whose == self);
  if (ours && watchdog_usec != nullptr && absl::SimpleAtoi(watchdog_usec, &microseconds) && microseconds > 0) {
    address.watchdog = absl::Microseconds(microseconds);
  }
  return address;
}

ServiceManager::ServiceManager(ServiceManagerAddress address) : address_(std::move(address)) {
  if (address_.socket.empty() || address_.watchdog <= absl::ZeroDuration()) return;
  watchdog_ = std::thread([this] {
    const absl::MutexLock lock(&mutex_);
    do Send("WATCHDOG=1");
    while (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), address_.watchdog / 2));
  });
}

ServiceManager::~ServiceManager() {
  {
    const absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  if (watchdog_.joinable()) watchdog_.join();
}

void ServiceManager::Ready(absl::string_view status) { Send(absl::StrCat("READY=1\nSTATUS=", status)); }

void ServiceManager::Stopping(absl::string_view status) { Send(absl::StrCat("STOPPING=1\nSTATUS=", status)); }

// A datagram that is lost is the service manager's concern: the daemon serves all the same.
void ServiceManager::Send(const std::string& state) const {
  sockaddr_un to = {};
  if (address_.socket.empty() || address_.socket.size() >= sizeof(to.sun_path)) return;
  to.sun_family = AF_UNIX;
  memcpy(to.sun_path, address_.socket.data(), address_.socket.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.socket.size());
  sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), length);
  close(fd);
}

}  // namespace attune
