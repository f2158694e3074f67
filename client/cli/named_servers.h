// Servers that the user has named in a file, each with how it is reached. The Python client has the same rules
// (tests/golden/named_servers.json).
#ifndef ATTUNE_CLIENT_CLI_NAMED_SERVERS_H_
#define ATTUNE_CLIENT_CLI_NAMED_SERVERS_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::cli {

// Values by environment variable: ATTUNE_SERVER, and what else the file says in place of the environment.
using ServerVariables = std::map<std::string, std::string>;

// Of the file: $XDG_CONFIG_HOME/attune/servers, else ~/.config/attune/servers; empty without a home.
std::string ServersPath(const std::function<std::string(const std::string&)>& variable);

// What the file says of `server`; nothing where that is no name (it is an address then). InvalidArgument for a name
// that no file has.
absl::StatusOr<ServerVariables> NamedServer(const std::string& server,
                                            const std::function<std::string(const std::string&)>& variable);

// What `text`, the file at `path`, says of `name`. Checks the whole file; INVALID_ARGUMENT names the line.
absl::StatusOr<ServerVariables> NamedServerIn(absl::string_view text, absl::string_view path, absl::string_view name);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_NAMED_SERVERS_H_
