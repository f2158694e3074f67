// Where the dashboard listens: --listen.
#ifndef ATTUNE_CLIENT_DASHBOARD_LISTEN_ADDRESS_H_
#define ATTUNE_CLIENT_DASHBOARD_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::dashboard {

struct ListenAddress {
  std::string ip;         // "127.0.0.1", "::1"
  int port = 0;           // 0: any that is free
  bool loopback = false;  // reached from this host alone
  bool any = false;       // every address of this host
};

// "127.0.0.1:7412", "[::1]:0", "localhost:80". InvalidArgument names the flag, the value and what is allowed; other
// names than localhost are not looked up.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// "127.0.0.1:7412", "[::1]:7412", as URLs have it.
std::string HostAndPort(const std::string& ip, int port);

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_LISTEN_ADDRESS_H_
