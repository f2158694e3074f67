// attune sweep: a file of problems, and a report.
#include <cerrno>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/conditions.h"
#include "client/cli/follow.h"
#include "client/cli/json.h"
#include "client/cli/search_options.h"
#include "client/cli/sweep_plan.h"
#include "client/cli/sweep_reports.h"
#include "client/cli/text.h"
#include "client/cpp/files.h"
#include "proto/attune/device_list.h"

namespace attune::cli {
namespace {

struct SweepArguments {
  std::string file;
  std::string report_md;
  std::string report_json;
  std::string report_junit;
  bool github = false;
  std::string request_id;
  bool detach = false;
  bool dry_run = false;
  bool ignore_advice = false;
  Conditions conditions;
  SearchOptions search;
  v1::Objective objective = v1::OBJECTIVE_UNSPECIFIED;
};

// Before a sweep of hours starts.
absl::Status CheckReports(const SweepArguments& arguments) {
  for (const std::string* file : {&arguments.report_md, &arguments.report_json, &arguments.report_junit}) {
    if (file->empty()) continue;
    if (absl::Status status = CheckReplaceable(*file); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Annotations of the run, and the report on its page, where GitHub names a file for that.
absl::Status TellGitHub(Session& session, const v1::SweepReport& report) {
  for (const std::string& line : GitHubAnnotations(report)) session.env().err << line << std::endl;
  const std::string page = session.env().variable("GITHUB_STEP_SUMMARY");
  if (page.empty()) return absl::OkStatus();
  std::ofstream file(page, std::ios::app);
  file << report.markdown() << "\n" << std::flush;
  return file.good() ? absl::OkStatus()
                     : absl::ErrnoToStatus(errno, absl::StrCat("the report could not be added to ", page,
                                                               ", which GITHUB_STEP_SUMMARY names"));
}

absl::Status WriteReports(Session& session, const SweepArguments& arguments, const v1::SweepReport& report) {
  if (arguments.github) {
    if (absl::Status status = TellGitHub(session, report); !status.ok()) return status;
  }
  if (!arguments.report_junit.empty()) {
    if (absl::Status status = ReplaceFile(arguments.report_junit, JUnitText(report)); !status.ok()) return status;
  }
  if (!arguments.report_md.empty()) {
    if (absl::Status status = ReplaceFile(arguments.report_md, report.markdown()); !status.ok()) return status;
  }
  if (!arguments.report_json.empty()) {
    return ReplaceFile(arguments.report_json, absl::StrCat(JsonText(SweepJson(report), 2), "\n"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> DryRun(Session& session, Client& client, const v1::SweepRequest& request) {
  const auto plan = client.PlanSweep(request);
  if (!plan.ok()) return plan.status();
  if (session.json()) {
    session.Emit(SweepPlanJson(*plan));
    return ExitCode::kOk;
  }
  Table table({{"problem", kName},
               {"variants", kNumber},
               {"known", kNumber},
               {"trials", kNumber},
               {"compiles", kNumber},
               {"what", kFlexible}});
  int retimed = 0;
  const bool several_cards = NamesSeveralCards(plan->device_id());
  for (const auto& row : plan->rows()) {
    const bool retime = row.tuned() && row.trials() == 0;
    retimed += retime ? 1 : 0;
    std::string what = retime ? "time the incumbent again" : row.tuned() ? "tune again" : "tune";
    if (several_cards) absl::StrAppend(&what, " on ", absl::StrReplaceAll(row.device_id(), {{",", " or "}}));
    table.Row({row.problem(), absl::StrCat(row.variants()), absl::StrCat(row.known()), absl::StrCat(row.trials()),
               absl::StrCat(row.compiles()), row.reason().empty() ? Cell(what) : Cell(row.reason(), Color::kYellow)});
  }
  session.Print(table);
  session.Print(
      absl::StrCat("\n", Counted(plan->rows_size(), "problem"), " on ", plan->device_id(), ": ",
                   Counted(plan->trials(), "trial"), " to run, at most ", Counted(plan->compiles(), "compile"), ", ",
                   Counted(retimed, "incumbent"), " to time again; ",
                   plan->has_estimate() ? absl::StrCat("together about ", DurationText(FromProto(plan->estimate())))
                                        : "no estimate, as nothing has been tried on this device yet"));
  return ExitCode::kOk;
}

// What the command line says of the search holds instead of what the plan says.
absl::Status SetSearch(const SweepArguments& arguments, v1::SweepPlan& plan) {
  const absl::StatusOr<v1::Strategy::Kind> kind = KindOf(arguments.search);
  if (!kind.ok()) return kind.status();
  if (*kind != v1::Strategy::KIND_UNSPECIFIED) {
    plan.set_strategy(*kind);
    plan.set_effort(EffortOf(arguments.search));
  }
  if (arguments.objective != v1::OBJECTIVE_UNSPECIFIED) plan.set_objective(arguments.objective);
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> RunSweep(Session& session, const SweepArguments& arguments) {
  auto plan = ReadSweepPlan(arguments.file);
  if (!plan.ok()) return plan.status();
  if (absl::Status status = SetSearch(arguments, *plan); !status.ok()) return status;
  if (!session.options().device.empty()) plan->set_device_id(session.options().device);
  if (!session.options().policy.empty()) plan->set_policy(session.policy());
  if (arguments.ignore_advice) plan->set_ignore_advice(true);
  if (absl::Status status = AddConditions(arguments.conditions, plan->mutable_where()); !status.ok()) return status;
  if (absl::Status status = CheckReports(arguments); !status.ok()) return status;
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::SweepRequest request;
  request.set_request_id(arguments.request_id);
  *request.mutable_plan() = *std::move(plan);
  if (arguments.dry_run) return DryRun(session, **client, request);
  const auto started = (*client)->Sweep(std::move(request));
  return FollowUnless(arguments.detach, session, started, [&](const v1::Operation& done) {
    return done.has_sweep() ? WriteReports(session, arguments, done.sweep()) : absl::OkStatus();
  });
}

}  // namespace

Action AddSweep(CLI::App& app) {
  auto arguments = std::make_shared<SweepArguments>();
  app.add_option("file", arguments->file, "An attune.v1.SweepPlan in protobuf text format")->required();
  CLI::Option* markdown = app.add_option("--report-md", arguments->report_md, "Write the report here as Markdown");
  CLI::Option* json = app.add_option("--report-json", arguments->report_json, "Write the report here as JSON");
  CLI::Option* junit = app.add_option("--report-junit", arguments->report_junit,
                                      "Write the report here as JUnit XML: SLOWER is a failure, FAILED an error");
  CLI::Option* github =
      app.add_flag("--github", arguments->github,
                   "On GitHub Actions: annotate the run with what is SLOWER, FAILED or AMBIGUOUS, and "
                   "add the report to its summary ($GITHUB_STEP_SUMMARY)");
  app.add_option("--request-id", arguments->request_id, "The same id starts the same sweep once");
  app.add_flag("--ignore-advice", arguments->ignore_advice, kIgnoreAdviceHelp);
  AddConditionOptions(app, &arguments->conditions);
  AddSearchOptions(app, "Default: as the plan says", &arguments->search);
  AddObjective(app, &arguments->objective,
               "What to find the best by, besides time: energy or edp, as with tune. Default: as the plan says");
  app.add_flag("--dry-run", arguments->dry_run,
               "Show what the sweep would do and about how long it would take; start nothing");
  app.add_flag("--detach", arguments->detach, "Print the operation's name and do not wait for it")
      ->excludes(markdown)
      ->excludes(json)
      ->excludes(junit)
      ->excludes(github);
  return [arguments](Session& session) { return RunSweep(session, *arguments); };
}

}  // namespace attune::cli
