#include "server/supervisor/environment.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

extern char** environ;

namespace attune::supervisor {
namespace {

constexpr absl::string_view kNames[] = {
    "ATTUNE_CUDA_INCLUDE", "ATTUNE_NVRTC", "CUDA_HOME", "CUDA_PATH", "HOME", "LANG", "LANGUAGE",
    "LD_LIBRARY_PATH",     "TMPDIR",       "TZ"};
constexpr absl::string_view kPrefixes[] = {"ASAN_", "LC_", "LSAN_", "OCL_", "OPENCL_", "POCL_", "TSAN_", "UBSAN_"};
// A kernel would be compiled once more by its first launch, on a thread that may start no linker.
constexpr absl::string_view kNotForKernels = "POCL_WORK_GROUP_SPECIALIZATION";

bool IsKept(absl::string_view variable) {
  const absl::string_view name = variable.substr(0, variable.find('='));
  return name != kNotForKernels &&
         (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
          std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                      [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); }));
}

}  // namespace

std::vector<std::string> Variables(Environment environment) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (environment == Environment::kInherited || IsKept(*variable)) variables.emplace_back(*variable);
  }
  if (environment == Environment::kScrubbed) variables.emplace_back("PATH=/usr/bin:/bin");
  return variables;
}

}  // namespace attune::supervisor
