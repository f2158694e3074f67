#include "client/cpp/token.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/files.h"

namespace attune {

absl::StatusOr<std::string> TokenIn(absl::string_view contents, const std::string& path) {
  const absl::string_view token = absl::StripAsciiWhitespace(contents);
  if (!token.empty() && std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) return std::string(token);
  return absl::InvalidArgumentError(absl::StrCat("the token file ", path,
                                                 token.empty() ? " is empty" : " does not hold one line with a token",
                                                 "; `attune token create` prints one"));
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  const absl::StatusOr<std::string> contents = ReadFile(path);
  if (!contents.ok()) return contents.status();
  return TokenIn(*contents, path);
}

bool IsLocal(absl::string_view server) {
  if (absl::StartsWith(server, "unix:")) return true;
  const absl::string_view host = server.substr(0, server.rfind(':'));
  // A name may begin with "127.", too, and is then of any host.
  const bool number = std::all_of(host.begin(), host.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
  return host == "localhost" || host == "[::1]" || (number && absl::StartsWith(host, "127."));
}

}  // namespace attune
