// A command's problem argument: one problem, or "-" for those on standard input.
#ifndef ATTUNE_CLIENT_CLI_PROBLEMS_H_
#define ATTUNE_CLIENT_CLI_PROBLEMS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "proto/attune/problem.h"

namespace attune::cli {

inline constexpr char kStandardInput[] = "-";

// Calls `read` with each line of standard input that says something: not those that are empty or begin with #. Its
// error gets the line's number. InvalidArgument when there is no such line.
absl::Status ForEachLine(Session& session, const std::function<absl::Status(absl::string_view line)>& read);

// The problem, or with "-" one per line; empty lines and those that begin with # are skipped. InvalidArgument names
// the first line that is wrong.
absl::StatusOr<std::vector<Problem>> ReadProblems(Session& session, const std::string& argument);

// Of several arguments, in their order.
absl::StatusOr<std::vector<Problem>> ReadProblems(Session& session, const std::vector<std::string>& arguments);

// A problem option's canonical text, as filters take it; empty when it is not given.
absl::StatusOr<std::string> CanonicalText(const std::string& problem);

// Calls `act` for each of them in turn. An error about one of several is printed, and the others go on; an unreachable
// server and a Ctrl-C end it. Returns the first exit code that is not kOk.
absl::StatusOr<ExitCode> ForEachProblem(Session& session, const std::vector<Problem>& problems,
                                        const std::function<absl::StatusOr<ExitCode>(const Problem&)>& act);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_PROBLEMS_H_
