// attune trends: what is served and has become slower or faster than it was served with, since when, and what changed.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct TrendsArguments {
  std::string problem;
  std::string since;
  bool all = false;
  double regression = 0;
};

Color ColorOf(v1::Trend::State state) {
  switch (state) {
    case v1::Trend::STATE_SLOWER:
      return Color::kRed;
    case v1::Trend::STATE_FASTER:
      return Color::kGreen;
    case v1::Trend::STATE_AMBIGUOUS:
    case v1::Trend::STATE_MOVED:
      return Color::kYellow;
    default:
      return Color::kPlain;
  }
}

std::string ChangesText(const v1::Trend& trend) {
  std::vector<std::string> changes;
  for (const v1::DependencyChange& change : trend.changes()) {
    // Hashes and variants are long, and say nothing here.
    const bool named = change.what() != "source" && change.what() != "variant";
    changes.push_back(named ? absl::StrCat(change.what(), " ", change.from(), " to ", change.to()) : change.what());
  }
  return absl::StrJoin(changes, ", ");
}

void AddRow(const v1::Trend& trend, Table* table) {
  const bool compared = trend.has_latest() && trend.state() != v1::Trend::STATE_MOVED;
  table->Row({trend.problem_text(),
              trend.class_alias().empty() ? trend.device_id() : trend.class_alias(),
              std::string(attune::Word(trend.policy())),
              {Word(trend.state()), ColorOf(trend.state())},
              compared ? absl::StrFormat("%+.1f %%", trend.change() * 100) : "",
              Micros(trend.reference().median_us()),
              Micros(trend.latest().median_us()),
              LocalTime(trend.since()),
              trend.nights() > 0 ? absl::StrCat(trend.nights()) : "",
              LocalTime(trend.latest_time()),
              ChangesText(trend)});
}

absl::StatusOr<v1::ListTrendsRequest> RequestOf(const Session& session, const TrendsArguments& arguments) {
  v1::ListTrendsRequest request;
  if (!arguments.problem.empty()) {
    const auto problem = ParseProblem(arguments.problem);
    if (!problem.ok()) return problem.status();
    request.set_problem(ToText(*problem));
  }
  request.set_device_id(session.options().device);
  if (!session.options().policy.empty()) request.set_policy(session.policy());
  request.set_regression(arguments.regression);
  if (!arguments.since.empty()) {
    const auto since = ParseDuration("--since", arguments.since);
    if (!since.ok()) return since.status();
    request.mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now() - *since));
  }
  if (!arguments.all && arguments.problem.empty()) {
    for (const v1::Trend::State state :
         {v1::Trend::STATE_SLOWER, v1::Trend::STATE_FASTER, v1::Trend::STATE_AMBIGUOUS, v1::Trend::STATE_MOVED}) {
      request.add_states(state);
    }
  }
  return request;
}

std::string NothingText(const Session& session, const TrendsArguments& arguments) {
  const CommonOptions& options = session.options();
  const std::string where = absl::StrCat(options.device.empty() ? "" : " on ", options.device,
                                         options.policy.empty() ? "" : ", policy ", options.policy);
  if (!arguments.problem.empty()) return absl::StrCat(arguments.problem, " is not served", where, ".");
  if (arguments.all) return absl::StrCat("Nothing is served", where, "; `attune tune` or a sweep comes first.");
  return absl::StrCat("Of what is served", where, ", nothing has become slower or faster; --all lists every problem.");
}

absl::StatusOr<ExitCode> RunTrends(Session& session, const TrendsArguments& arguments) {
  const absl::StatusOr<v1::ListTrendsRequest> request = RequestOf(session, arguments);
  if (!request.ok()) return request.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  Table table({{"problem", kName},
               {"device"},
               {"policy", kText, 4},
               {"state"},
               {"change", kNumber},
               {"was us", kNumber},
               {"is us", kNumber},
               {"since", kText, 1},
               {"nights", kNumber, 3},
               {"timed", kText, 5},
               {"changed then", kFlexible}});
  int64_t slower = 0;
  int64_t listed = 0;
  const absl::Status status = ForEach(**client, &Client::ListTrends, &v1::ListTrendsResponse::trends, *request, kAll,
                                      [&](const v1::Trend& trend) {
                                        ++listed;
                                        if (trend.state() == v1::Trend::STATE_SLOWER) ++slower;
                                        if (session.json()) {
                                          session.Emit(TrendJson(trend));
                                        } else {
                                          AddRow(trend, &table);
                                        }
                                      });
  if (!status.ok()) return status;
  if (listed == 0) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
  }
  if (!session.json()) {
    if (!table.empty()) session.Print(table);
    if (listed == 0) {
      session.Note(NothingText(session, arguments));
    } else if (slower > 0) {
      session.Note(
          absl::StrCat(Counted(slower, "confirmed regression"), "; `attune history PROBLEM --times` draws one"));
    }
  }
  return slower > 0 ? ExitCode::kRegression : ExitCode::kOk;
}

}  // namespace

Action AddTrends(CLI::App& app) {
  auto arguments = std::make_shared<TrendsArguments>();
  AddProblemArgument(app, &arguments->problem);
  app.add_flag("--all", arguments->all, "Also what has stayed the same, and what was not timed again");
  app.add_option("--since", arguments->since, "Only times and incumbents of the last while, as 720h");
  app.add_option("--regression", arguments->regression, "The share beyond which a change counts; default 0.02");
  return [arguments](Session& session) { return RunTrends(session, *arguments); };
}

}  // namespace attune::cli
