// One run of `attune`: the options every command has, the world it runs in, and the client it talks through.
#ifndef ATTUNE_CLIENT_CLI_SESSION_H_
#define ATTUNE_CLIENT_CLI_SESSION_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/cli/environment.h"
#include "client/cli/exit_code.h"
#include "client/cli/json_values.h"
#include "client/cli/named_servers.h"
#include "client/cli/table.h"
#include "client/cpp/client.h"

namespace attune::cli {

struct CommonOptions {
  std::string server;      // or its name in the user's file; empty: DefaultServer's
  std::string token_file;  // empty: a named server's own, else $ATTUNE_TOKEN_FILE; none when that is empty, too
  TlsOptions tls;          // what is empty: $ATTUNE_TLS_CA and so on
  std::string format = "table";
  std::string device;
  std::string policy;  // empty: hot
  std::string timeout = "10s";
  bool no_color = false;
  bool quiet = false;
  bool wide = false;
};

// Used from one thread.
class Session {
 public:
  Session(CommonOptions options, Environment* env) : options_(std::move(options)), env_(*env) {}

  const CommonOptions& options() const { return options_; }
  Environment& env() { return env_; }
  v1::Policy policy() const;
  // Of a list without --policy: of both.
  bool Lists(v1::Policy policy) const { return options_.policy.empty() || policy == this->policy(); }
  bool quiet() const { return options_.quiet; }
  bool json() const { return options_.format == "json"; }
  bool colored_out() const;
  bool colored_err() const;
  // Whether progress may move the cursor back: not on a terminal that calls itself dumb.
  bool redraws_err() const;

  // Connected at the first use. The pointer is the session's.
  absl::StatusOr<Client*> client();
  // One of the caller's own, with the session's options but for what `change` changes.
  absl::StatusOr<std::unique_ptr<Client>> NewClient(absl::FunctionRef<void(ClientOptions&)> change) const;
  // Its address; of a name that the user's file does not explain, the name.
  std::string server() const;
  // With the environment's variables for what no option says, or what the user's file says of a named server.
  TlsOptions Tls() const;
  // Where `import` keeps a snapshot: ~/.local/share/attune/snapshot, or below $XDG_DATA_HOME; empty when neither
  // variable is set. To read from: the place of earlier versions, a cache, where there is one there alone.
  std::string imported_snapshot() const;
  std::string snapshot_path() const;

  // One JSON line.
  void Emit(const Json& json);
  void Print(const Table& table);
  // On a terminal, what is longer than its width goes on in further lines, unless --wide is given.
  void Print(const StyledLine& line);
  // Text of others may be in it: control characters but newlines around it are escaped.
  void Print(absl::string_view line);
  // One line whatever the width, to be copied or read by a program; escaped likewise.
  void PrintWhole(absl::string_view line);
  // A remark for people, on stderr; escaped and wrapped likewise.
  void Note(absl::string_view line);

 private:
  bool Colored(bool is_terminal) const;
  // Columns of a line on stdout or stderr; 0: no limit.
  size_t Width(bool is_terminal) const;
  // What the user's file says of the server, where that was given by a name.
  absl::StatusOr<ServerVariables> Named() const;
  // The environment's, but for what `Named` says, and for the token's of a named server.
  std::string Variable(const std::string& name) const;

  const CommonOptions options_;
  Environment& env_;
  std::unique_ptr<Client> client_;
};

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_SESSION_H_
