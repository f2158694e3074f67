// Flags from the environment, as containers set them: ATTUNED_DATA_DIR=/srv is --data_dir=/srv.
#ifndef ATTUNE_SERVER_DAEMON_ENVIRONMENT_FLAGS_H_
#define ATTUNE_SERVER_DAEMON_ENVIRONMENT_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attune {

// The flags that ATTUNED_* variables of `environment` (a null-terminated array of NAME=VALUE) stand for, in the order
// of their names. To be put before the command line's, which win. InvalidArgument names a variable of no flag.
absl::StatusOr<std::vector<std::string>> FlagsOfEnvironment(const char* const* environment);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_ENVIRONMENT_FLAGS_H_
