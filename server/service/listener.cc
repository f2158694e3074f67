#include "server/service/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/service/listen_address.h"

namespace attune::service {
namespace {

// Files of the store, and descriptors of gRPC's own.
constexpr int kKeptForFiles = 128;
// A worker has its socket, its process and its output; a core may have one, and a device.
constexpr int kKeptForACore = 8;
constexpr int kKeptForLocal = 32;
// Each costs tens of kilobytes, however many descriptors there may be.
constexpr int kMostConnections = 8192;

constexpr mode_t kSocketMode = 0660;
constexpr int kPortTries = 10;
constexpr absl::Duration kWithoutDescriptors = absl::Milliseconds(100);

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Removes a socket file that nobody listens on any more.
absl::Status ClearStaleSocket(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("'", path, "' exists and is not a socket"));
  }
  const sockaddr_un address = UnixAddress(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  // A full queue is a sign of life too.
  const bool answered =
      fd >= 0 && (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN);
  if (fd >= 0) close(fd);
  if (answered) {
    return absl::FailedPreconditionError(absl::StrCat("another process listens on '", path, "'"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot remove the stale socket '", path, "': ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status CannotListen(absl::string_view where, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on '", where, "': ", why));
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// A listening socket, or errno.
std::pair<int, int> ListenTo(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return {-1, errno};
  const int yes = 1;
  const int no = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // [::] is every address of this host, IPv4 too.
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return {fd, 0};
  const int error = errno;
  close(fd);
  return {-1, error};
}

}  // namespace

ConnectionLimits LimitsOfThisProcess() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int kept = kKeptForFiles + kKeptForACore * cores;
  const int all = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kMostConnections + kept + kKeptForLocal));
  const int local = std::max(all - kept, all / 2);
  return {std::max(local - kKeptForLocal, all / 4), local};
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const std::vector<std::string>& addresses, bool insecure) {
  if (addresses.empty()) return absl::InvalidArgumentError("listen is empty; give host:port or unix:/path");
  std::unique_ptr<Listener> listener(new Listener);
  for (const std::string& text : addresses) {
    absl::StatusOr<ListenAddress> address = ParseListenAddress(text);
    if (!address.ok()) return address.status();
    if (!address->path.empty()) {
      if (absl::Status status = listener->ListenLocally(address->path); !status.ok()) return status;
      listener->addresses_.push_back(text);
      continue;
    }
    if (absl::Status reach = CheckReach(*address, text); !insecure && !reach.ok()) return reach;
    absl::StatusOr<int> port = listener->ListenOnNetwork(address->host, address->port);
    if (!port.ok()) return port.status();
    listener->addresses_.push_back(absl::StrCat(text.substr(0, text.rfind(':') + 1), *port));
  }
  return listener;
}

absl::Status Listener::ListenLocally(const std::string& path) {
  if (absl::Status status = ClearStaleSocket(path); !status.ok()) return status;
  // /run is empty after a boot. What else is missing, bind says.
  if (const size_t slash = path.rfind('/'); slash != std::string::npos) mkdir(path.substr(0, slash).c_str(), 0755);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return CannotListen(path, strerror(errno));
  const sockaddr_un address = UnixAddress(path);
  // The file is made with the socket's own mode: at no moment more than what it ends with.
  fchmod(fd, kSocketMode);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const absl::Status status = CannotListen(path, strerror(errno));
    close(fd);
    return status;
  }
  struct stat info = {};
  lstat(path.c_str(), &info);
  sockets_.push_back({fd, Peer::Transport::kUnix, path, info.st_dev, info.st_ino});
  if (chmod(path.c_str(), kSocketMode) != 0 || listen(fd, SOMAXCONN) != 0) return CannotListen(path, strerror(errno));
  return absl::OkStatus();
}

absl::StatusOr<int> Listener::ListenOnNetwork(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), "0", &hints, &found);
  const std::string where = absl::StrCat(host, ":", port);
  if (failed != 0) return CannotListen(where, gai_strerror(failed));
  const absl::Cleanup release = [found] { freeaddrinfo(found); };

  // A port that is free at one address may be in use at another.
  for (int attempt = 1;; ++attempt) {
    std::vector<Socket> opened;
    std::set<std::string> seen;  // resolvers name some addresses twice
    int chosen = port;
    int error = 0;
    for (const addrinfo* address = found; address != nullptr && error != EADDRINUSE; address = address->ai_next) {
      auto& place = *reinterpret_cast<sockaddr_in*>(address->ai_addr);  // IPv6 has its port there as well
      place.sin_port = 0;
      if (!seen.emplace(reinterpret_cast<const char*>(address->ai_addr), address->ai_addrlen).second) continue;
      place.sin_port = htons(static_cast<uint16_t>(chosen));
      const auto [fd, why] = ListenTo(*address);
      if (fd < 0) {
        error = why;  // this host may have IPv4 alone
        continue;
      }
      opened.push_back(
          {fd, IsLoopback(*address->ai_addr) ? Peer::Transport::kLoopback : Peer::Transport::kNetwork, ""});
      chosen = PortOf(fd);
    }
    if (error != EADDRINUSE && !opened.empty()) {
      sockets_.insert(sockets_.end(), opened.begin(), opened.end());
      return chosen;
    }
    for (const Socket& socket : opened) close(socket.fd);
    if (error != EADDRINUSE || port != 0 || attempt == kPortTries) return CannotListen(where, strerror(error));
  }
}

void Listener::Start(ConnectionLimits limits, Accepted accepted) {
  limits_ = limits;
  accepted_ = std::move(accepted);
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

void Listener::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_, 1);
    thread_.join();
    close(stop_);
  }
  for (const Socket& socket : sockets_) {
    struct stat info = {};
    const bool ours = !socket.path.empty() && lstat(socket.path.c_str(), &info) == 0 && info.st_dev == socket.device &&
                      info.st_ino == socket.inode;
    if (ours) unlink(socket.path.c_str());
    close(socket.fd);
  }
  sockets_.clear();
}

void Listener::Run() {
  std::vector<pollfd> entries;
  for (const Socket& socket : sockets_) entries.push_back({socket.fd, POLLIN, 0});
  entries.push_back({stop_, POLLIN, 0});
  while (true) {
    if (poll(entries.data(), entries.size(), -1) < 0) continue;  // interrupted
    if (entries.back().revents != 0) return;
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (entries[i].revents != 0) Accept(sockets_[i]);
    }
  }
}

void Listener::Accept(const Socket& socket) {
  const bool local = !socket.path.empty();
  const int fd = accept4(socket.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;  // gone again
    LogWarning("a connection waits", {{"reason", strerror(errno)}});
    absl::SleepFor(kWithoutDescriptors);
    return;
  }
  if (const int limit = local ? limits_.local : limits_.tcp; fd >= limit) {
    LogWarning("connection refused, too many are open",
               {{"descriptors", limit}, {"transport", local ? "unix" : "tcp"}});
    close(fd);
    return;
  }
  Peer peer{socket.transport};
  if (local) {
    ucred credentials = {};
    socklen_t size = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      LogWarning("connection refused, its credentials cannot be read", {{"reason", strerror(errno)}});
      close(fd);
      return;
    }
    peer.uid = credentials.uid;
  } else {
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  accepted_(fd, peer);
}

}  // namespace attune::service
