// attune trials: what was tried, and how it ended.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/csv.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/problems.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"

namespace attune::cli {
namespace {

struct TrialsArguments {
  std::string subject;
  std::string family;
  std::vector<std::string> verdicts;
  std::string job;
  bool fastest = false;
  int64_t limit = 50;
  bool csv = false;
};

// "trials/123", or 123; no problem is a number.
bool IsTrial(const std::string& subject) {
  return absl::StartsWith(subject, "trials/") ||
         (!subject.empty() && std::all_of(subject.begin(), subject.end(), absl::ascii_isdigit));
}

// The same whatever the trials: what is no list or object in a trial's JSON.
std::vector<std::string> CsvColumns() {
  const std::set<std::string> others = {"type", "parameters", "latency_quantiles_ms", "profile", "sanitizing"};
  const Json trial = TrialJson({});
  std::vector<std::string> columns;
  for (const auto& [name, value] : trial.items()) {
    if (!others.contains(name)) columns.push_back(name);
  }
  return columns;
}

void PrintCsv(Session& session, const std::vector<Json>& trials) {
  for (const std::string& line : CsvLines(CsvColumns(), trials)) session.PrintWhole(line);
}

absl::StatusOr<ExitCode> ShowOne(Session& session, const std::string& name, bool csv) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto trial = (*client)->GetTrial(name);
  if (!trial.ok()) return trial.status();
  if (csv) {
    PrintCsv(session, {TrialJson(*trial)});
  } else if (session.json()) {
    session.Emit(TrialJson(*trial));
  } else {
    session.Print(TrialFields(*trial, trial->finish_time()));
  }
  return ExitCode::kOk;
}

absl::StatusOr<v1::ListTrialsRequest> ToRequest(const Session& session, const TrialsArguments& arguments) {
  v1::ListTrialsRequest request;
  v1::TrialFilter& filter = *request.mutable_filter();
  const auto problem = CanonicalText(arguments.subject);
  if (!problem.ok()) return problem.status();
  filter.set_problem(*problem);
  for (const std::string& text : arguments.verdicts) {
    const auto verdict = ParseVerdict(text);
    if (!verdict.ok()) return verdict.status();
    filter.add_verdicts(*verdict);
  }
  filter.set_device_id(session.options().device);
  filter.set_family(arguments.family);
  if (!session.options().policy.empty()) filter.set_policy(session.policy());
  if (!arguments.job.empty()) filter.set_job(ResourceName("operations", arguments.job));
  request.set_order(arguments.fastest ? v1::ListTrialsRequest::ORDER_FASTEST : v1::ListTrialsRequest::ORDER_NEWEST);
  return request;
}

absl::StatusOr<ExitCode> RunTrials(Session& session, const TrialsArguments& arguments) {
  if (arguments.csv && session.json()) {
    return absl::InvalidArgumentError("--csv and --format=json: a trial has one form; allowed: either of them");
  }
  if (IsTrial(arguments.subject)) {
    return ShowOne(session, ResourceName("trials", arguments.subject), arguments.csv);
  }
  const auto request = ToRequest(session, arguments);
  if (!request.ok()) return request.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const TrialsOf whose = arguments.subject.empty() ? TrialsOf::kProblems : TrialsOf::kOneProblem;
  Table table = TrialTable(whose);
  std::vector<Json> rows;  // of --csv
  int64_t count = 0;
  const absl::Status status = ForEach(**client, &Client::ListTrials, &v1::ListTrialsResponse::trials, *request,
                                      arguments.limit, [&](const v1::Trial& trial) {
                                        ++count;
                                        if (arguments.csv) {
                                          rows.push_back(TrialJson(trial));
                                        } else if (session.json()) {
                                          session.Emit(TrialJson(trial));
                                        } else {
                                          AddTrial(trial, whose, &table);
                                        }
                                      });
  if (!status.ok()) return status;
  if (count == 0) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
    if (absl::Status known = CheckFamily(**client, arguments.family); !known.ok()) return known;
    if (absl::Status known = CheckOperation(**client, request->filter().job()); !known.ok()) return known;
  }
  if (session.json()) return ExitCode::kOk;
  if (arguments.csv) PrintCsv(session, rows);
  if (count == 0) {
    session.Note("No trials match.");
  } else {
    if (!arguments.csv) session.Print(table);
    if (count == arguments.limit) session.Note(absl::StrCat("The first ", count, "; --limit 0 shows all."));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddTrials(CLI::App& app) {
  auto arguments = std::make_shared<TrialsArguments>();
  app.add_option("problem", arguments->subject, "Only this problem's; or one trial: trials/123, or 123");
  app.add_option("--family", arguments->family, "Only this family's");
  AddRepeatable(app, "--verdict", &arguments->verdicts, "Only with this verdict");
  app.add_option("--job", arguments->job, "Only of this operation");
  app.add_flag("--fastest", arguments->fastest, "Fastest first, not newest first");
  AddCount(app, "--limit", &arguments->limit, "At most this many; 0: all; default 50");
  app.add_flag("--csv", arguments->csv, "As comma-separated values, a column for each parameter; units as in JSON");
  return [arguments](Session& session) { return RunTrials(session, *arguments); };
}

}  // namespace attune::cli
