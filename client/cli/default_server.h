// Where the server is when nobody says. The Python client has the same rule (tests/golden/default_server.json).
#ifndef ATTUNE_CLIENT_CLI_DEFAULT_SERVER_H_
#define ATTUNE_CLIENT_CLI_DEFAULT_SERVER_H_

#include <functional>
#include <string>

namespace attune::cli {

// $ATTUNE_SERVER; else the Unix socket of the user's own daemon, or of the host's, where there is one that `connects`
// accepts; else localhost:7411. `variable` gives an environment variable, "" when it is not set.
std::string DefaultServer(const std::function<std::string(const std::string&)>& variable,
                          const std::function<bool(const std::string& path)>& connects);

// Whether there is a socket at `path` that this user may connect to.
bool MayConnect(const std::string& path);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_DEFAULT_SERVER_H_
