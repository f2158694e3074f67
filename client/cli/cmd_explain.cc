// attune explain: what bounds a trial, in words.
#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"

namespace attune::cli {
namespace {

struct ExplainArguments {
  std::string subject;
  std::string problem;
  v1::Objective objective = v1::OBJECTIVE_UNSPECIFIED;
};

absl::StatusOr<v1::ExplainRequest> ToRequest(const Session& session, const ExplainArguments& arguments) {
  v1::ExplainRequest request;
  const std::string& subject = arguments.subject;
  if (absl::StartsWith(subject, "submissions/")) {
    request.set_submission(subject);
    if (arguments.problem.empty()) return request;
    const auto problem = ParseProblem(arguments.problem);
    if (!problem.ok()) return problem.status();
    *request.mutable_submission_problem() = attune::ToProto(*problem);
    return request;
  }
  if (!arguments.problem.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--problem is given with ", subject, "; it is allowed with a submission alone"));
  }
  const bool number = !subject.empty() && std::all_of(subject.begin(), subject.end(), absl::ascii_isdigit);
  if (number || absl::StartsWith(subject, "trials/")) {
    request.set_trial(ResourceName("trials", subject));
    return request;
  }
  const auto problem = ParseProblem(subject);
  if (!problem.ok()) return problem.status();
  *request.mutable_best()->mutable_problem() = attune::ToProto(*problem);
  request.mutable_best()->set_device_id(session.options().device);
  request.mutable_best()->set_policy(session.policy());
  request.mutable_best()->set_objective(arguments.objective);
  return request;
}

// What is served has the time of its play-off. nullopt where that is the trial's own, or nothing is served.
std::optional<v1::Timing> PlayOffTiming(Client& client, const v1::ExplainRequest& request, const v1::Trial& trial) {
  if (!request.has_best()) return std::nullopt;
  BestQuery query;
  query.problem = *attune::FromProto(request.best().problem());
  query.device_id = request.best().device_id();
  query.policy = request.best().policy();
  query.objective = request.best().objective();
  const auto answer = client.GetBest(query);
  if (!answer.ok() || (*answer)->trial() != trial.name() || IsOfNearest(**answer)) return std::nullopt;
  if ((*answer)->timing().median_us() == trial.timing().median_us()) return std::nullopt;
  return (*answer)->timing();
}

void PrintExplanation(Session& session, const v1::ExplainResponse& explanation,
                      const std::optional<v1::Timing>& play_off) {
  Table fields = TrialFields(explanation.trial(), explanation.trial().finish_time());
  if (play_off.has_value()) {
    fields.Row({"explained", absl::StrCat("the trial's own time, not the ", Micros(play_off->median_us()),
                                          " us of the play-off it is served with")});
  }
  std::string needs = absl::StrFormat("%.3g GFLOP and %.3g MB", explanation.flops() / 1e9, explanation.bytes() / 1e6);
  if (explanation.tflops() > 0) {
    absl::StrAppendFormat(&needs, "; reaches %s and %.3g GB/s", Tflops(explanation.tflops()), explanation.gbs());
  }
  fields.Row({"needs", needs});
  session.Print(fields);
  session.Print("");
  int number = 0;
  for (const auto& finding : explanation.findings()) {
    StyledLine line;
    line.Add(absl::StrCat(++number, ". ")).Add(Word(finding.bound()), Color::kBold).Add(": ").Add(finding.text());
    session.Print(line);
    if (!finding.advice().empty()) session.Print(absl::StrCat("   Try: ", finding.advice()));
  }
}

absl::StatusOr<ExitCode> RunExplain(Session& session, const ExplainArguments& arguments) {
  const auto request = ToRequest(session, arguments);
  if (!request.ok()) return request.status();
  if (arguments.objective != v1::OBJECTIVE_UNSPECIFIED && !request->has_best()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--objective is given with ", arguments.subject, "; it is allowed with a problem alone"));
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto explanation = (*client)->Explain(*request);
  if (!explanation.ok()) return explanation.status();
  if (session.json()) {
    session.Emit(ExplanationJson(*explanation));
  } else {
    PrintExplanation(session, *explanation, PlayOffTiming(**client, *request, explanation->trial()));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddExplain(CLI::App& app) {
  auto arguments = std::make_shared<ExplainArguments>();
  app.add_option("subject", arguments->subject,
                 "A trial, as trials/123; a problem, for its best variant; or a submission, as submissions/7")
      ->required();
  app.add_option("--problem", arguments->problem, "Of a submission of several problems, which");
  AddObjective(app, &arguments->objective, "Of a problem, what its best variant is the best by, as with best");
  return [arguments](Session& session) { return RunExplain(session, *arguments); };
}

}  // namespace attune::cli
