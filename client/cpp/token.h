// The token that a client's calls bring, and over which connections it may. The Python client has the same rules
// (tests/golden/token.json).
#ifndef ATTUNE_CLIENT_CPP_TOKEN_H_
#define ATTUNE_CLIENT_CPP_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune {

// What a file holds, without the white space around it. InvalidArgument when that is no line of printable ASCII without
// a space, such as a header of HTTP takes; the reader's error when it cannot be read.
absl::StatusOr<std::string> ReadToken(const std::string& path);
absl::StatusOr<std::string> TokenIn(absl::string_view contents, const std::string& path);

// Whether a connection to `server` stays on this host: a Unix socket, or a loopback address.
bool IsLocal(absl::string_view server);

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_TOKEN_H_
