#include "client/cli/session.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/default_server.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

constexpr char kTokenFile[] = "ATTUNE_TOKEN_FILE";

}  // namespace

v1::Policy Session::policy() const { return ParsePolicy(options_.policy); }

// https://no-color.org: any value but the empty one switches colours off. https://bixense.com/clicolors: any but 0
// switches them on where no terminal is.
bool Session::Colored(bool is_terminal) const {
  if (options_.no_color || !env_.variable("NO_COLOR").empty()) return false;
  const std::string forced = env_.variable("CLICOLOR_FORCE");
  if (!forced.empty() && forced != "0") return true;
  return is_terminal && env_.variable("TERM") != "dumb";
}

bool Session::colored_out() const { return Colored(env_.out_is_terminal); }
bool Session::colored_err() const { return Colored(env_.err_is_terminal); }
bool Session::redraws_err() const { return env_.err_is_terminal && env_.variable("TERM") != "dumb"; }

std::string Session::server() const {
  if (const auto named = Named(); named.ok() && !named->empty()) return named->at("ATTUNE_SERVER");
  if (!options_.server.empty()) return options_.server;
  return DefaultServer(env_.variable, MayConnect);
}

absl::StatusOr<ServerVariables> Session::Named() const {
  return NamedServer(options_.server.empty() ? env_.variable("ATTUNE_SERVER") : options_.server, env_.variable);
}

std::string Session::Variable(const std::string& name) const {
  if (const auto named = Named(); named.ok() && !named->empty()) {
    if (const auto found = named->find(name); found != named->end()) return found->second;
    if (name == kTokenFile) return "";  // the environment's may be another server's, which this one is not to learn
  }
  return env_.variable(name);
}

namespace {

// https://specifications.freedesktop.org/basedir-spec: a relative path is to be ignored. Empty without a home.
std::string SnapshotBelow(const Environment& env, const char* variable, absl::string_view below_home) {
  if (const std::string base = env.variable(variable); absl::StartsWith(base, "/")) {
    return absl::StrCat(base, "/attune/snapshot");
  }
  const std::string home = env.variable("HOME");
  return home.empty() ? "" : absl::StrCat(home, below_home, "/attune/snapshot");
}

}  // namespace

std::string Session::imported_snapshot() const { return SnapshotBelow(env_, "XDG_DATA_HOME", "/.local/share"); }

std::string Session::snapshot_path() const {
  const std::string path = imported_snapshot();
  const std::string of_earlier_versions = SnapshotBelow(env_, "XDG_CACHE_HOME", "/.cache");
  std::error_code none;
  return !std::filesystem::exists(path, none) && std::filesystem::exists(of_earlier_versions, none)
             ? of_earlier_versions
             : path;
}

TlsOptions Session::Tls() const {
  TlsOptions tls = options_.tls;
  const auto otherwise = [this](std::string& option, const char* variable) {
    if (option.empty()) option = Variable(variable);
  };
  if (tls.insecure) return tls;
  otherwise(tls.ca, "ATTUNE_TLS_CA");
  otherwise(tls.certificate, "ATTUNE_TLS_CERT");
  otherwise(tls.key, "ATTUNE_TLS_KEY");
  otherwise(tls.server_name, "ATTUNE_TLS_SERVER_NAME");
  return tls;
}

absl::StatusOr<std::unique_ptr<Client>> Session::NewClient(absl::FunctionRef<void(ClientOptions&)> change) const {
  const auto deadline = ParseDuration("--timeout", options_.timeout);
  if (!deadline.ok()) return deadline.status();
  if (const auto named = Named(); !named.ok()) return named.status();
  ClientOptions options;
  options.deadline = *deadline;
  options.snapshot_path = snapshot_path();
  options.token_file = options_.token_file.empty() ? Variable(kTokenFile) : options_.token_file;
  options.tls = Tls();
  change(options);
  return Client::Connect(server(), std::move(options));
}

absl::StatusOr<Client*> Session::client() {
  if (client_ == nullptr) {
    auto client = NewClient([](ClientOptions&) {});
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
  }
  return client_.get();
}

void Session::Emit(const Json& json) { env_.out << JsonText(json) << "\n" << std::flush; }

size_t Session::Width(bool is_terminal) const {
  return options_.wide || !is_terminal ? 0 : static_cast<size_t>(env_.width);
}

void Session::Print(const Table& table) {
  env_.out << table.Render(Width(env_.out_is_terminal), colored_out()) << std::flush;
}

void Session::Print(absl::string_view line) {
  env_.out << WrappedLine(line, Width(env_.out_is_terminal)) << "\n" << std::flush;
}

void Session::Print(const StyledLine& line) {
  env_.out << line.RenderWrapped(Width(env_.out_is_terminal), colored_out()) << "\n" << std::flush;
}

void Session::PrintWhole(absl::string_view line) { env_.out << PrintableLine(line) << "\n" << std::flush; }

void Session::Note(absl::string_view line) {
  env_.err << WrappedLine(line, Width(env_.err_is_terminal)) << "\n" << std::flush;
}

}  // namespace attune::cli
