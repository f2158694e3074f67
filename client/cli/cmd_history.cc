// attune history: who was served for a problem, since when and why; and how long it took, time after time.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/fleet_cards.h"
#include "client/cli/history_times.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"

namespace attune::cli {
namespace {

// Newest first, the first that no roll-back took out is served.
Cell StateOf(const v1::Incumbent& incumbent, std::set<std::pair<std::string, v1::Policy>>& served) {
  if (incumbent.rolled_back()) return {"rolled back", Color::kYellow};
  // Earlier servers have no classes: there each device has its own.
  const std::string& of = incumbent.device_class().empty() ? incumbent.device_id() : incumbent.device_class();
  if (!served.emplace(of, incumbent.policy()).second) return {""};
  return {incumbent.pinned() ? "pinned" : "served", Color::kGreen};
}

// In a fleet each host has a cuda:0: there the card that timed it is called by its host's name, too.
std::string CardOf(const v1::Incumbent& incumbent, const std::map<std::string, std::string>& names) {
  const auto it = names.find(incumbent.trial().device_uuid());
  return it == names.end() ? incumbent.device_id() : it->second;
}

void Print(Session& session, const std::vector<v1::Incumbent>& incumbents,
           const std::map<std::string, std::string>& card_names) {
  const bool both_policies = std::any_of(incumbents.begin(), incumbents.end(), [&](const v1::Incumbent& incumbent) {
    return incumbent.policy() != incumbents.front().policy();
  });
  Table table({{"incumbent"},
               {"since", kText, 1},
               {"device", kText, 3},
               {"policy", kText, both_policies ? 0 : 2},
               {"time us", kNumber},
               {"state"},
               {"variant", kVariant},
               {"why", kWrapped}});
  std::set<std::pair<std::string, v1::Policy>> served;  // device classes and policies whose incumbent was seen
  for (const v1::Incumbent& incumbent : incumbents) {
    table.Row({incumbent.name(), LocalTime(incumbent.promote_time()), CardOf(incumbent, card_names),
               std::string(attune::Word(incumbent.policy())), Micros(ServedTiming(incumbent).median_us()),
               StateOf(incumbent, served), VariantText(incumbent.trial().variant()), incumbent.why()});
  }
  session.Print(table);
}

// The command that would tune what was asked about.
std::string TuneCommand(const Session& session, const std::string& problem) {
  const CommonOptions& options = session.options();
  return absl::StrCat("attune tune ", problem, options.device.empty() ? "" : " --device ", options.device,
                      options.policy.empty() ? "" : " --policy ", options.policy);
}

struct HistoryArguments {
  std::string problem;
  bool times = false;
  std::string since;
  int32_t spans = 60;
};

absl::StatusOr<ExitCode> RunTimes(Session& session, const HistoryArguments& arguments) {
  const auto problem = ParseProblem(arguments.problem);
  if (!problem.ok()) return problem.status();
  v1::ListRetimingsRequest request;
  request.set_problem(ToText(*problem));
  request.set_device_id(session.options().device);
  if (!session.options().policy.empty()) request.set_policy(session.policy());
  request.set_spans(arguments.spans);
  if (!arguments.since.empty()) {
    const auto since = ParseDuration("--since", arguments.since);
    if (!since.ok()) return since.status();
    request.mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now() - *since));
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  std::vector<v1::Retiming> retimings;
  const absl::Status status = ForEach(**client, &Client::ListRetimings, &v1::ListRetimingsResponse::retimings, request,
                                      kAll, [&](const v1::Retiming& retiming) { retimings.push_back(retiming); });
  if (!status.ok()) return status;
  if (retimings.empty()) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
  }
  if (session.json()) {
    for (const v1::Retiming& retiming : retimings) session.Emit(RetimingJson(retiming));
  } else if (retimings.empty()) {
    session.Note(absl::StrCat(ToText(*problem), " was not timed again", arguments.since.empty() ? "" : " in the last ",
                              arguments.since,
                              "; every play-off of its incumbent, in a tuning or a sweep, adds a time"));
  } else {
    session.Print(TimesTable(retimings));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunHistory(Session& session, const HistoryArguments& arguments) {
  if (arguments.times) return RunTimes(session, arguments);
  const auto problem = ParseProblem(arguments.problem);
  if (!problem.ok()) return problem.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::ListIncumbentsRequest request;
  request.set_problem(ToText(*problem));
  request.set_device_id(session.options().device);
  request.set_history(true);
  std::vector<v1::Incumbent> incumbents;
  const absl::Status status = ForEach(**client, &Client::ListIncumbents, &v1::ListIncumbentsResponse::incumbents,
                                      request, kAll, [&](const v1::Incumbent& incumbent) {
                                        if (session.Lists(incumbent.policy())) incumbents.push_back(incumbent);
                                      });
  if (!status.ok()) return status;
  if (incumbents.empty()) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
  }
  if (session.json()) {
    for (const v1::Incumbent& incumbent : incumbents) session.Emit(IncumbentJson(incumbent));
  } else if (incumbents.empty()) {
    const std::string& policy = session.options().policy;
    session.Note(absl::StrCat(ToText(*problem), " was never tuned here", policy.empty() ? "" : ", policy ", policy,
                              ". To tune it: ", TuneCommand(session, ToText(*problem))));
  } else {
    Print(session, incumbents, CardNamesByUuid(FleetCards(**client)));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddHistory(CLI::App& app) {
  auto arguments = std::make_shared<HistoryArguments>();
  AddProblemArgument(app, &arguments->problem)->required();
  CLI::Option* const times =
      app.add_flag("--times", arguments->times,
                   "Instead, how long what was served took whenever it was timed again, with a plot and what changed");
  app.add_option("--since", arguments->since, "Only times of the last while, as 720h")->needs(times);
  AddCount(app, "--spans", &arguments->spans,
           "One time of each card, policy and variant in so many equal spans; 0: all; default 60")
      ->needs(times);
  return [arguments](Session& session) { return RunHistory(session, *arguments); };
}

}  // namespace attune::cli
