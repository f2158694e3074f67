// The server's listening sockets, and the thread that takes connections from them.
//
// gRPC could listen itself, but then takes connections until the process has no descriptor left, and neither the store
// can open a file nor a worker be started while they stay. Here connections leave room.
#ifndef ATTUNE_SERVER_SERVICE_LISTENER_H_
#define ATTUNE_SERVER_SERVICE_LISTENER_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace attune::service {

// A connection is refused when its descriptor would have this number or a higher one. Descriptors are numbered from the
// lowest that is free, so that this many are in use then.
struct ConnectionLimits {
  int tcp = 0;
  int local = 0;  // higher: whoever is on this host still gets in when the network has taken what it may
};
// By what this process may open: the rest is for files and workers.
ConnectionLimits LimitsOfThisProcess();

// Where a connection is from, as far as the kernel says.
struct Peer {
  enum class Transport { kUnix, kLoopback, kNetwork };  // the last two by the address that was connected to
  Transport transport = Transport::kNetwork;
  uid_t uid = 0;  // with kUnix: whose process connected
};

class Listener {
 public:
  // Listens on every address (listen_address.h); a name's addresses all get the same port. The socket file that a
  // process left behind is replaced; its mode is 0660 whatever the umask, and its directory is made (one level).
  // Unavailable names the address that could not be listened on and why, FailedPrecondition a socket that another
  // process serves, or an address beyond this host unless `insecure`.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::vector<std::string>& addresses, bool insecure);
  ~Listener() { Stop(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // What it listens on, with real port numbers.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // From now on hands over connected sockets, which `accepted` owns; it is called on the listener's thread.
  using Accepted = std::function<void(int fd, const Peer& peer)>;
  void Start(ConnectionLimits limits, Accepted accepted);
  // No connection is taken after this; socket files are removed. Harmless when repeated.
  void Stop();

 private:
  struct Socket {
    int fd;
    Peer::Transport transport;
    std::string path;  // of a Unix socket
    dev_t device = 0;  // of the file at `path`, so that nobody else's is removed
    ino_t inode = 0;
  };

  Listener() = default;
  absl::Status ListenLocally(const std::string& path);
  // Returns the port.
  absl::StatusOr<int> ListenOnNetwork(const std::string& host, int port);
  void Run();
  void Accept(const Socket& socket);

  std::vector<Socket> sockets_;
  std::vector<std::string> addresses_;
  ConnectionLimits limits_;
  Accepted accepted_;
  int stop_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_LISTENER_H_
