#include "server/profile/executable.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/base/reason.h"

namespace attune::profile {
namespace {

bool IsProgram(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::string Variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<std::string> FindExecutable(absl::string_view name, const std::string& given, absl::string_view flag) {
  if (!given.empty()) {
    if (IsProgram(given)) return given;
    return WithReason(absl::FailedPreconditionError(
                          absl::StrCat("this host's daemon has ", flag, "=", given, ", which is no executable file")),
                      "NO_TOOL");
  }
  std::vector<std::string> folders = absl::StrSplit(Variable("PATH"), ':', absl::SkipEmpty());
  if (const std::string home = Variable("CUDA_HOME"); !home.empty()) folders.push_back(home + "/bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    std::string path = absl::StrCat(folder, "/", name);
    if (IsProgram(path)) return path;
  }
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("this host has no ", name,
                                                 ": it is neither in the daemon's PATH nor in /usr/local/cuda/bin; "
                                                 "install it with the CUDA toolkit, or start attuned with ",
                                                 flag, "=PATH")),
      "NO_TOOL");
}

}  // namespace attune::profile
