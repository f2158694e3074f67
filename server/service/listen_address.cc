#include "server/service/listen_address.h"

#include <sys/un.h>

#include <algorithm>

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

}  // namespace attune::service
