#include "client/cli/named_servers.h"

#include <array>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cpp/files.h"

namespace attune::cli {
namespace {

constexpr std::array<absl::string_view, 6> kKeys = {"server",   "token_file", "tls_ca",
                                                    "tls_cert", "tls_key",    "tls_server_name"};
constexpr std::array<absl::string_view, 4> kPaths = {"token_file", "tls_ca", "tls_cert", "tls_key"};
constexpr char kServer[] = "ATTUNE_SERVER";

bool IsName(absl::string_view server) {
  return !server.empty() && absl::c_all_of(server, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("._-", absl::string_view(&c, 1));
  });
}

absl::string_view Stripped(absl::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == absl::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// A file's servers, line by line.
class Reader {
 public:
  explicit Reader(absl::string_view path) : path_(path) {}

  absl::Status Read(absl::string_view text) {
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      where_ = absl::StrCat(path_, ":", ++number);
      if (absl::Status read = ReadLine(Stripped(line)); !read.ok()) return read;
    }
    for (const auto& [name, server] : servers_) {
      if (!server.contains(kServer)) return Wrong(path_, ": [", name, "] has no server");
    }
    return absl::OkStatus();
  }

  const std::map<std::string, ServerVariables, std::less<>>& servers() const { return servers_; }

 private:
  template <typename... Parts>
  static absl::Status Wrong(const Parts&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  }

  absl::Status ReadLine(absl::string_view line) {
    if (line.empty() || line.front() == '#') return absl::OkStatus();
    if (line.front() == '[' && line.back() == ']') return Begin(std::string(line.substr(1, line.size() - 2)));
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos || line.front() == '[') {
      return Wrong(where_, ": '", line, "'; it must be a comment (#), [name] or key = value");
    }
    return Add(Stripped(line.substr(0, equals)), Stripped(line.substr(equals + 1)));
  }

  absl::Status Begin(const std::string& name) {
    if (!IsName(name)) {
      return Wrong(where_, ": the name is '", name, "'; it must have letters, digits, '-', '_' and '.' alone");
    }
    const auto [at, is_new] = servers_.try_emplace(name);
    if (!is_new) return Wrong(where_, ": [", name, "] stands there twice");
    section_ = &at->second;
    return absl::OkStatus();
  }

  absl::Status Add(absl::string_view key, absl::string_view value) {
    if (section_ == nullptr) return Wrong(where_, ": '", key, "' stands before the first [name]");
    if (absl::c_find(kKeys, key) == kKeys.end()) {
      return Wrong(where_, ": the key is '", key, "'; it must be ",
                   absl::StrJoin(kKeys.begin(), std::prev(kKeys.end()), ", "), " or ", kKeys.back());
    }
    const std::string variable = absl::StrCat("ATTUNE_", absl::AsciiStrToUpper(key));
    if (section_->contains(variable)) return Wrong(where_, ": ", key, " stands there twice");
    if (value.empty()) return Wrong(where_, ": ", key, " is empty");
    if (key == "server" && !absl::StrContains(value, ':')) {
      return Wrong(where_, ": server is '", value, "'; it must be host:port or unix:/path");
    }
    const bool is_relative = absl::c_find(kPaths, key) != kPaths.end() && value.front() != '/';
    (*section_)[variable] = is_relative ? absl::StrCat(std::filesystem::path(path_).parent_path().string(), "/", value)
                                        : std::string(value);
    return absl::OkStatus();
  }

  const std::string path_;
  std::string where_;
  std::map<std::string, ServerVariables, std::less<>> servers_;
  ServerVariables* section_ = nullptr;
};

}  // namespace

std::string ServersPath(const std::function<std::string(const std::string&)>& variable) {
  // https://specifications.freedesktop.org/basedir-spec: a relative path is to be ignored.
  if (const std::string base = variable("XDG_CONFIG_HOME"); absl::StartsWith(base, "/")) {
    return absl::StrCat(base, "/attune/servers");
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.config/attune/servers");
}

absl::StatusOr<ServerVariables> NamedServer(const std::string& server,
                                            const std::function<std::string(const std::string&)>& variable) {
  if (!IsName(server)) return ServerVariables();
  const std::string path = ServersPath(variable);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    const std::string where =
        path.empty() ? ", if $HOME is set (docs/cli.md)" : absl::StrCat(" in ", path, ", which does not exist");
    return absl::InvalidArgumentError(
        absl::StrCat("the server is '", server, "'; it must be host:port, unix:/path, or a name", where));
  }
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the servers' file cannot be read: ", text.status().message()));
  }
  return NamedServerIn(*text, path, server);
}

absl::StatusOr<ServerVariables> NamedServerIn(absl::string_view text, absl::string_view path, absl::string_view name) {
  Reader reader(path);
  if (absl::Status read = reader.Read(text); !read.ok()) return read;
  if (const auto found = reader.servers().find(name); found != reader.servers().end()) return found->second;
  const std::string known =
      absl::StrJoin(reader.servers(), ", ", [](std::string* out, const auto& server) { *out += server.first; });
  return absl::InvalidArgumentError(absl::StrCat("the server is '", name,
                                                 "'; it must be host:port, unix:/path, or a name in ", path,
                                                 known.empty() ? ", which has none" : absl::StrCat(": ", known)));
}

}  // namespace attune::cli
