#include "server/service/listen_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"

namespace attune::service {
namespace {

constexpr size_t kMostPath = sizeof(sockaddr_un::sun_path) - 1;
// Of a name or an IPv4 address; `brackets`: of an IPv6 address.
bool IsHost(absl::string_view host, bool brackets) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [brackets](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_' || (brackets && (c == ':' || c == '%'));
  });
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  ListenAddress address;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    if (rest.empty() || rest.size() > kMostPath || rest.find('\0') != absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " has a path of ", rest.size(),
                                                     " bytes; a Unix socket's is one of 1 to ", kMostPath));
    }
    address.path = std::string(rest);
    return address;
  }
  const absl::Status not_an_address =
      absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is not host:port or unix:/path"));
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return not_an_address;
  absl::string_view host = rest.substr(0, colon);
  const absl::string_view port = rest.substr(colon + 1);
  const bool brackets = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (!IsHost(host, brackets) || port.empty() || !std::all_of(port.begin(), port.end(), absl::ascii_isdigit)) {
    return not_an_address;
  }
  uint32_t number = 0;
  if (!absl::SimpleAtoi(port, &number) || number > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " has a port that is not one of 0 to 65535"));
  }
  address.host = std::string(host);
  address.port = static_cast<uint16_t>(number);
  return address;
}

bool IsLoopback(const sockaddr& address) {
  constexpr uint8_t kLoopbackNet = 127;
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ip) || (IN6_IS_ADDR_V4MAPPED(&ip) && ip.s6_addr[12] == kLoopbackNet);
}

absl::Status CheckReach(const ListenAddress& address, absl::string_view text) {
  if (!address.path.empty()) return absl::OkStatus();
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), nullptr, &hints, &found) != 0) return absl::OkStatus();
  const absl::Cleanup release = [found] { freeaddrinfo(found); };
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (IsLoopback(*one->ai_addr)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(Quoted(text),
                     " can be reached from other hosts, and nothing is encrypted there; have it encrypted "
                     "(--tls_cert, --tls_key), listen on localhost or unix:/path, to both of which ssh -L forwards, or "
                     "say --insecure"));
  }
  return absl::OkStatus();
}

}  // namespace attune::service
