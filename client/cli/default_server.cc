#include "client/cli/default_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace attune::cli {

std::string DefaultServer(const std::function<std::string(const std::string&)>& variable,
                          const std::function<bool(const std::string& path)>& connects) {
  if (std::string server = variable("ATTUNE_SERVER"); !server.empty()) return server;
  std::vector<std::string> sockets = {"/run/attune/attuned.sock"};
  if (const std::string runtime = variable("XDG_RUNTIME_DIR"); !runtime.empty()) {
    sockets.insert(sockets.begin(), absl::StrCat(runtime, "/attune/attuned.sock"));
  }
  for (const std::string& path : sockets) {
    if (connects(path)) return absl::StrCat("unix:", path);
  }
  return "localhost:7411";
}

bool MayConnect(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && access(path.c_str(), W_OK) == 0;
}

}  // namespace attune::cli
