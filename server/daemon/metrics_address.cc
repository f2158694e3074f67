#include "server/daemon/metrics_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/service/listen_address.h"

namespace attune {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

// Of a name that has both, IPv4's.
const addrinfo* Preferred(const addrinfo* found) {
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) return one;
  }
  return found;
}

}  // namespace

absl::StatusOr<MetricsAddress> ParseMetricsAddress(absl::string_view text, bool insecure) {
  const bool port_alone = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  const auto parsed = service::ParseListenAddress(port_alone ? absl::StrCat(kLoopback, ":", text) : std::string(text));
  if (!parsed.ok() || !parsed->path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is no address for HTTP; give a port, which is ",
                                                   kLoopback, "'s, or host:port, with a port from 0 to 65535"));
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(parsed->host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), ": ", Quoted(parsed->host), " has no address: ", gai_strerror(error)));
  }
  const absl::Cleanup release = [found] { freeaddrinfo(found); };
  const addrinfo& chosen = *Preferred(found);
  if (!insecure && !service::IsLoopback(*chosen.ai_addr)) {
    return absl::FailedPreconditionError(
        absl::StrCat(Quoted(text),
                     " can be reached from other hosts, where nothing is encrypted and everybody may read; listen on "
                     "127.0.0.1, to which ssh -L forwards, or say --metrics_insecure"));
  }
  std::array<char, NI_MAXHOST> host = {};
  if (getnameinfo(chosen.ai_addr, chosen.ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " has no numeric address"));
  }
  return MetricsAddress{host.data(), parsed->port};
}

}  // namespace attune
