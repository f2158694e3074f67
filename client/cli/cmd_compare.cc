// attune compare: times of two dates, devices, toolchains, drivers or kernel families, problem by problem.
#include <set>
#include <string>
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

// "cuda:0", or "cuda:0 to cuda:1".
std::string DevicesOf(const Compared::Row& row) {
  const std::string& from = row.from().device_id();
  const std::string& to = row.to().device_id();
  if (from.empty() || to.empty() || from == to) return from.empty() ? to : from;
  return absl::StrCat(from, " to ", to);
}

void Print(Session& session, const Compared& response, bool all) {
  std::set<std::string> devices;
  for (const Compared::Row& row : response.rows()) devices.insert(DevicesOf(row));
  const bool several_devices = devices.size() > 1;
  Table table({{"problem", kName},
               {"comparison"},
               {"speed-up", kNumber},
               {"device", kText, several_devices ? 0 : 4},
               {"from us", kNumber},
               {"to us", kNumber},
               {"from", kText, 2},
               {"to", kText, 1},
               {"variant", kVariant, 3}});
  int64_t left_out = 0;
  int64_t one_sided = 0;
  int64_t compared = 0;
  for (const Compared::Row& row : response.rows()) {
    if (row.speedup() > 0) ++compared;
    if (!all && row.comparison() != Compared::COMPARISON_FASTER && row.comparison() != Compared::COMPARISON_SLOWER) {
      ++(row.speedup() > 0 ? left_out : one_sided);
      continue;
    }
    table.Row({row.problem(),
               {Word(row.comparison()), ColorOf(row.comparison())},
               row.speedup() > 0 ? Speedup(row.speedup()) : "",
               DevicesOf(row),
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
        absl::StrCat("geometric mean of ", Counted(compared, "time"), ": ", Speedup(response.geometric_mean())));
  }
  if (left_out > 0) {
    session.Note(absl::StrCat(Counted(left_out, "time"), " without a significant difference; --all lists them"));
  }
  if (one_sided > 0) {
    session.Note(
        absl::StrCat(Counted(one_sided, "time"), " of one side alone, with nothing to compare; --all lists them"));
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
