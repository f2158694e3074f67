// Where the CUDA toolkit's programs are.
#ifndef ATTUNE_SERVER_PROFILE_EXECUTABLE_H_
#define ATTUNE_SERVER_PROFILE_EXECUTABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::profile {

// The program's path: `given`, or else the first of PATH, CUDA_HOME/bin and /usr/local/cuda/bin that has it.
// FailedPrecondition names `flag`.
absl::StatusOr<std::string> FindExecutable(absl::string_view name, const std::string& given, absl::string_view flag);

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_EXECUTABLE_H_
