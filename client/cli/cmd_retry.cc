// attune retry: trials that did not end OK, to be tried again.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/problems.h"
#include "client/cli/text.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

struct RetryArguments {
  std::vector<std::string> verdicts;
  std::string problem;
  std::string family;
};

// A trial that has a time is not tried again here, one that was LOST always is.
absl::StatusOr<v1::Verdict> ParseRetried(const std::string& text) {
  absl::StatusOr<v1::Verdict> verdict = ParseVerdict(text);
  const bool timed = verdict.ok() && (*verdict == v1::VERDICT_OK || *verdict == v1::VERDICT_SLOW);
  if (verdict.ok() && !timed && *verdict != v1::VERDICT_LOST) return verdict;
  const absl::string_view why = !verdict.ok() ? ""
                                : timed       ? " (attune tune --retry-known tries those again)"
                                              : " (those are always tried again)";
  std::vector<absl::string_view> allowed;
  for (int value = v1::VERDICT_OK + 1; value < v1::VERDICT_LOST; ++value) {
    allowed.push_back(attune::Word(static_cast<v1::Verdict>(value)));
  }
  return absl::InvalidArgumentError(absl::StrCat("--verdict is ", verdict.ok() ? attune::Word(*verdict) : Quoted(text),
                                                 "; allowed: ", absl::StrJoin(allowed, ", "), why));
}

absl::StatusOr<ExitCode> RunRetry(Session& session, const RetryArguments& arguments) {
  v1::RetryTrialsRequest request;
  v1::TrialFilter& filter = *request.mutable_filter();
  for (const std::string& text : arguments.verdicts) {
    const auto verdict = ParseRetried(text);
    if (!verdict.ok()) return verdict.status();
    filter.add_verdicts(*verdict);
  }
  const auto problem = CanonicalText(arguments.problem);
  if (!problem.ok()) return problem.status();
  filter.set_problem(*problem);
  filter.set_family(arguments.family);
  filter.set_device_id(session.options().device);
  if (!session.options().policy.empty()) filter.set_policy(session.policy());
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto retried = (*client)->RetryTrials(request);
  if (!retried.ok()) return retried.status();
  if (retried->trials() == 0) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
    if (absl::Status known = CheckFamily(**client, arguments.family); !known.ok()) return known;
  }
  if (session.json()) {
    session.Emit(RetryJson(*retried));
    return ExitCode::kOk;
  }
  if (retried->trials() == 0) {
    session.Note("No such trials, or all of them will be tried again anyway.");
    return ExitCode::kOk;
  }
  session.Print(absl::StrCat(Counted(retried->trials(), "trial"), " of ", Counted(retried->problems_size(), "problem"),
                             " will be tried again by the next tune or sweep; ",
                             Counted(retried->codes(), "failed compile"), " forgotten"));
  for (const std::string& problem : retried->problems()) session.Print(problem);
  return ExitCode::kOk;
}

}  // namespace

Action AddRetry(CLI::App& app) {
  auto arguments = std::make_shared<RetryArguments>();
  AddRepeatable(app, "--verdict", &arguments->verdicts,
                "Retry trials with this verdict: CRASHED, TIMEOUT, WRONG_RESULT, ...")
      ->required();
  app.add_option("--problem", arguments->problem, "Only this problem's");
  app.add_option("--family", arguments->family, "Only this family's");
  return [arguments](Session& session) { return RunRetry(session, *arguments); };
}

}  // namespace attune::cli
