// The history of a loop of submissions: what each iteration tried, changed and came to.
#ifndef ATTUNE_CLIENT_CLI_LOOP_SUMMARY_H_
#define ATTUNE_CLIENT_CLI_LOOP_SUMMARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/submission.pb.h"
#include "client/cli/json_values.h"
#include "client/cli/line_diff.h"
#include "client/cli/session.h"

namespace attune::cli {

struct Iteration {
  v1::Submission submission;  // with its files
  std::string against;        // the submission that `diff` is from: the last one kept before it; empty: there is none
  Diff diff;
};

// Oldest first. NotFound when the loop has none.
absl::StatusOr<std::vector<Iteration>> IterationsOf(Client& client, const std::string& loop,
                                                    const std::string& principal);

// One JSON object an iteration, with its diff.
Json IterationJson(const Iteration& iteration);
// A table, and below it each change.
std::string LoopMarkdown(const std::string& loop, const std::vector<Iteration>& iterations);
void PrintLoop(Session& session, const std::vector<Iteration>& iterations);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_LOOP_SUMMARY_H_
