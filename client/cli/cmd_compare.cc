// attune compare: times of two dates, devices, toolchains, drivers or kernel families, problem by problem.
#include <tuple>

#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/text.h"
#include "client/cli/time_selection.h"

namespace attune::cli {
namespace {

struct CompareArguments {
  std::string from;
  std::string to;
  std::string problem;
  bool all = false;
  double regression = 0;
};

using Compared = v1::CompareTimesResponse;

Color ColorOf(Compared::Comparison comparison) {
  switch (comparison) {
    case Compared::COMPARISON_SLOWER:
      return Color::kRed;
    case Compared::COMPARISON_FASTER:
      return Color::kGreen;
    case Compared::COMPARISON_UNCLEAR:
      return Color::kYellow;
    default:
      return Color::kPlain;
  }
}

void Print(Session& session, const Compared& response, bool all) {
  Table table({{"problem", kName},
               {"comparison"},
               {"speed-up", kNumber},
               {"from us", kNumber},
               {"to us", kNumber},
               {"from", kText, 2},
               {"to", kText, 1},
               {"variant", kVariant, 3}});
  int64_t left_out = 0;
  int64_t compared = 0;
  for (const Compared::Row& row : response.rows()) {
    if (row.speedup() > 0) ++compared;
    if (!all && row.comparison() != Compared::COMPARISON_FASTER && row.comparison() != Compared::COMPARISON_SLOWER) {
      ++left_out;
      continue;
    }
    table.Row({row.problem(),
               {Word(row.comparison()), ColorOf(row.comparison())},
               row.speedup() > 0 ? Speedup(row.speedup()) : "",
               Micros(row.from().timing().median_us()),
               Micros(row.to().timing().median_us()),
               LocalTime(row.from().finish_time()),
               LocalTime(row.to().finish_time()),
               row.to().variant()});
  }
  if (!table.empty()) session.Print(table);
  if (response.rows().empty()) {
    session.Note("No problem has a time of either side.");
    return;
  }
  if (compared > 0) {
    session.Print(
        absl::StrCat("geometric mean of ", Counted(compared, "problem"), ": ", Speedup(response.geometric_mean())));
  }
  if (left_out > 0) {
    session.Note(absl::StrCat(Counted(left_out, "problem"), " without a significant difference; --all lists them"));
  }
}

absl::StatusOr<ExitCode> RunCompare(Session& session, const CompareArguments& arguments) {
  v1::CompareTimesRequest request;
  for (const auto& [name, text, side] : {std::tuple("FROM", &arguments.from, request.mutable_from()),
                                         std::tuple("TO", &arguments.to, request.mutable_to())}) {
    absl::StatusOr<v1::TimeSelection> selection = ParseSelection(name, *text);
    if (!selection.ok()) return selection.status();
    if (selection->device_id().empty()) selection->set_device_id(session.options().device);
    *side = *std::move(selection);
  }
  if (!arguments.problem.empty()) {
    const auto problem = ParseProblem(arguments.problem);
    if (!problem.ok()) return problem.status();
    request.set_problem(ToText(*problem));
  }
  request.set_policy(session.policy());
  request.set_regression(arguments.regression);
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Compared> response = (*client)->CompareTimes(request);
  if (!response.ok()) return response.status();
  if (session.json()) {
    session.Emit(ComparedTimesJson(*response));
  } else {
    Print(session, *response, arguments.all);
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddCompare(CLI::App& app) {
  auto arguments = std::make_shared<CompareArguments>();
  app.add_option("from", arguments->from, kSelectionHelp)->required();
  app.add_option("to", arguments->to, "As FROM; without it, what is served now");
  app.add_option("--problem", arguments->problem, "Only this problem");
  app.add_flag("--all", arguments->all, "Also problems without a significant difference");
  app.add_option("--regression", arguments->regression, "The share beyond which a difference counts; default 0.02");
  return [arguments](Session& session) { return RunCompare(session, *arguments); };
}

}  // namespace attune::cli
