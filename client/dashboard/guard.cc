#include "client/dashboard/guard.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/dashboard/errors.h"
#include "proto/attune/quote.h"

namespace attune::dashboard {
namespace {

// Where the port of "host:port" begins; npos when there is none. An address of IPv6 has brackets.
size_t PortColon(absl::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  return colon == absl::string_view::npos || (bracket != absl::string_view::npos && colon < bracket)
             ? absl::string_view::npos
             : colon;
}

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-.[]:", absl::string_view(&c, 1));
}

}  // namespace

const std::vector<std::pair<std::string, std::string>>& SecurityHeaders() {
  static const std::vector<std::pair<std::string, std::string>> headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
       "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
  };
  return headers;
}

absl::Status CheckHostName(absl::string_view name) {
  const size_t colon = PortColon(name);
  int port = 1;
  const bool port_is_one =
      colon == absl::string_view::npos || (absl::SimpleAtoi(name.substr(colon + 1), &port) && port > 0 && port < 65536);
  if (!name.empty() && colon != 0 && port_is_one && std::all_of(name.begin(), name.end(), IsHostCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--host-name is ", Quoted(name), "; allowed: names as gpu7.example.org, and with a port as localhost:9000"));
}

Guard::Guard(bool tls, int port, const std::vector<std::string>& names) : scheme_(tls ? "https://" : "http://") {
  std::vector<std::string> all = {"127.0.0.1", "localhost", "[::1]"};
  all.insert(all.end(), names.begin(), names.end());
  const int unwritten = tls ? 443 : 80;
  for (const std::string& name : all) {
    const std::string host = absl::AsciiStrToLower(name);
    if (PortColon(host) != std::string::npos) {
      hosts_.push_back(host);
      continue;
    }
    hosts_.push_back(absl::StrCat(host, ":", port));
    if (port == unwritten) hosts_.push_back(host);
  }
}

bool Guard::IsOurs(absl::string_view host) const {
  return std::find(hosts_.begin(), hosts_.end(), absl::AsciiStrToLower(host)) != hosts_.end();
}

std::optional<HttpResponse> Guard::Refuse(const HttpRequest& request) const {
  const std::string host = request.header("Host");
  if (request.headers.count("Host") != 1 || !IsOurs(host)) {
    return ErrorResponse(421, "MISDIRECTED",
                         absl::StrCat("the Host header is ", Quoted(host), "; allowed: ", absl::StrJoin(hosts_, ", "),
                                      ", and what --host-name adds"));
  }
  for (auto [at, end] = request.headers.equal_range("Origin"); at != end; ++at) {
    absl::string_view origin = at->second;
    if (!absl::ConsumePrefix(&origin, scheme_) || !IsOurs(origin)) {
      return ErrorResponse(403, "PERMISSION_DENIED",
                           absl::StrCat("the Origin is ", Quoted(at->second), "; allowed: this server's own pages"));
    }
  }
  const std::string site = request.header("Sec-Fetch-Site");
  const bool followed_link = request.path == "/" && request.header("Sec-Fetch-Mode") == "navigate" &&
                             request.header("Sec-Fetch-Dest") == "document";
  if (site.empty() || site == "none" || site == "same-origin" || followed_link) return std::nullopt;
  return ErrorResponse(403, "PERMISSION_DENIED",
                       absl::StrCat("Sec-Fetch-Site is ", Quoted(site),
                                    "; allowed: same-origin and none, and any for a link to the first page"));
}

}  // namespace attune::dashboard
