#include "server/daemon/environment_flags.h"

#include <algorithm>

#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"

namespace attune {
namespace {

// What Kubernetes sets in every pod beside a service that is called attuned (ATTUNED_SERVICE_HOST,
// ATTUNED_PORT_7411_TCP). Names without the prefix.
bool IsOfKubernetes(absl::string_view name) {
  return name == "PORT" || absl::StartsWith(name, "PORT_") || absl::StartsWith(name, "SERVICE_");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FlagsOfEnvironment(const char* const* environment) {
  std::vector<std::string> flags;
  for (; *environment != nullptr; ++environment) {
    absl::string_view variable = *environment;
    if (!absl::ConsumePrefix(&variable, "ATTUNED_")) continue;
    const size_t end = variable.find('=');
    if (IsOfKubernetes(variable.substr(0, end))) continue;
    const std::string name = absl::AsciiStrToLower(variable.substr(0, end));
    if (end == absl::string_view::npos || absl::FindCommandLineFlag(name) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("the environment has ",
                                                     Quoted(absl::StrCat("ATTUNED_", variable.substr(0, end))),
                                                     ", which stands for no flag; `attuned --help` lists the flags"));
    }
    flags.push_back(absl::StrCat("--", name, variable.substr(end)));
  }
  std::sort(flags.begin(), flags.end());
  return flags;
}

}  // namespace attune
