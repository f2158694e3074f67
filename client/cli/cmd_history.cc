// attune history: who was served for a problem, since when and why.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
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

absl::StatusOr<ExitCode> RunHistory(Session& session, const std::string& text) {
  const auto problem = ParseProblem(text);
  if (!problem.ok()) return problem.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::ListIncumbentsRequest request;
  request.set_problem(ToText(*problem));
  request.set_device_id(session.options().device);
  request.set_history(true);
  Table table({{"incumbent"},
               {"since", kText, 1},
               {"device", kText, 3},
               {"policy", kText, 2},
               {"time us", kNumber},
               {"state"},
               {"variant", kVariant},
               {"why", kWrapped}});
  std::set<std::pair<std::string, v1::Policy>> served;  // device classes and policies whose incumbent was seen
  const absl::Status status =
      ForEach(**client, &Client::ListIncumbents, &v1::ListIncumbentsResponse::incumbents, request, kAll,
              [&](const v1::Incumbent& incumbent) {
                if (session.json()) {
                  session.Emit(IncumbentJson(incumbent));
                  return;
                }
                table.Row({incumbent.name(), LocalTime(incumbent.promote_time()), incumbent.device_id(),
                           std::string(attune::Word(incumbent.policy())), Micros(ServedTiming(incumbent).median_us()),
                           StateOf(incumbent, served), VariantText(incumbent.trial().variant()), incumbent.why()});
              });
  if (!status.ok()) return status;
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    session.Note(absl::StrCat(ToText(*problem), " was never tuned here. To tune it: attune tune ", ToText(*problem)));
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddHistory(CLI::App& app) {
  auto problem = std::make_shared<std::string>();
  AddProblemArgument(app, problem.get())->required();
  return [problem](Session& session) { return RunHistory(session, *problem); };
}

}  // namespace attune::cli
