// A TCP connection to this host that sends just what a test wants sent.
#ifndef ATTUNE_CLIENT_DASHBOARD_TESTING_RAW_CONNECTION_H_
#define ATTUNE_CLIENT_DASHBOARD_TESTING_RAW_CONNECTION_H_

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/string_view.h"

namespace attune::dashboard {

class RawConnection {
 public:
  explicit RawConnection(int port, const std::string& text = "") : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    Send(text);
  }
  ~RawConnection() { close(fd_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return connected_; }
  // False when the peer has closed.
  bool Send(absl::string_view text) {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Until the peer closes.
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    for (ssize_t got = 0; (got = recv(fd_, bytes, sizeof(bytes), 0)) > 0;) all.append(bytes, static_cast<size_t>(got));
    return all;
  }

 private:
  const int fd_;
  bool connected_ = false;
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_TESTING_RAW_CONNECTION_H_
