#include "client/dashboard/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune::dashboard {

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("--listen is ", Quoted(text),
                   "; allowed: ADDRESS:PORT as 127.0.0.1:7412, [::1]:7412 and localhost:0 (a free port)"));
  const size_t colon = text.rfind(':');
  // inet_pton reads up to a NUL.
  if (colon == absl::string_view::npos || absl::StrContains(text, '\0')) return wrong;
  ListenAddress address;
  const absl::string_view port = text.substr(colon + 1);
  if (!absl::SimpleAtoi(port, &address.port) || address.port < 0 || address.port > 65535 ||
      !std::all_of(port.begin(), port.end(), absl::ascii_isdigit)) {
    return wrong;
  }
  absl::string_view host = text.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  in_addr v4 = {};
  in6_addr v6 = {};
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    address.ip = std::string(host.substr(1, host.size() - 2));
    if (inet_pton(AF_INET6, address.ip.c_str(), &v6) != 1) return wrong;
    address.loopback = IN6_IS_ADDR_LOOPBACK(&v6);
    // The library opens these sockets to IPv4 too, which would make ::ffff:0:0 every address.
    if (IN6_IS_ADDR_V4MAPPED(&v6)) return wrong;
    address.any = IN6_IS_ADDR_UNSPECIFIED(&v6);
  } else {
    address.ip = std::string(host);
    if (inet_pton(AF_INET, address.ip.c_str(), &v4) != 1) return wrong;
    address.loopback = (ntohl(v4.s_addr) >> 24) == 127;
    address.any = v4.s_addr == htonl(INADDR_ANY);
  }
  return address;
}

std::string HostAndPort(const std::string& ip, int port) {
  return absl::StrContains(ip, ':') ? absl::StrCat("[", ip, "]:", port) : absl::StrCat(ip, ":", port);
}

}  // namespace attune::dashboard
