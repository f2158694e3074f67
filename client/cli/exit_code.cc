#include "client/cli/exit_code.h"

#include "client/cpp/status.h"

namespace attune::cli {

ExitCode ExitCodeOf(const absl::Status& status) {
  if (ErrorReason(status) == "INFEASIBLE") return ExitCode::kInfeasible;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kUsage;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kUnreachable;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return ExitCode::kOperationFailed;
    default:
      return ExitCode::kError;
  }
}

}  // namespace attune::cli
