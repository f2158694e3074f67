// What an operation that is done has to say, for people and for programs.
#ifndef ATTUNE_CLIENT_CLI_OPERATION_RESULT_H_
#define ATTUNE_CLIENT_CLI_OPERATION_RESULT_H_

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "client/cli/session.h"

namespace attune::cli {

// Prints the result and returns its exit code: kRegression for a sweep with one and for REVERT, kOperationFailed when
// the operation failed or was cancelled, kNotFound when tuning found no variant that is OK.
absl::StatusOr<ExitCode> PrintResult(Session& session, const v1::Operation& operation);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_OPERATION_RESULT_H_
