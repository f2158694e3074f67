// What `attune` exits with. Scripts depend on these: values never change meaning. docs/cli.md lists them.
#ifndef ATTUNE_CLIENT_CLI_EXIT_CODE_H_
#define ATTUNE_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace attune::cli {

enum class ExitCode {
  kOk = 0,
  kError = 1,                  // anything the others do not name
  kUsage = 2,                  // the command line, a problem's text or a plan file is wrong
  kNotFound = 3,               // no such trial, operation or file; no answer
  kUnreachable = 4,            // no server answered in time
  kRegression = 5,             // a sweep found one, evaluate says REVERT, or sanitize found errors
  kOperationFailed = 6,        // the operation failed or was cancelled, or a row of a sweep failed
  kOutOfTime = 7,              // a sweep's total time ended before most of its problems
  kInfeasible = 8,             // the problem, the variant or every variant is infeasible; no variant is OK
  kRegressionAndFailures = 9,  // a sweep found a regression, and rows of it failed
  kInterrupted = 130,          // Ctrl-C; the operation goes on
};

ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_EXIT_CODE_H_
