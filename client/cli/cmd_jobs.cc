// attune jobs: operations, newest first.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/problems.h"
#include "client/cli/progress.h"
#include "client/cli/text.h"
#include "client/cli/timeline.h"
#include "client/cpp/files.h"

namespace attune::cli {
namespace {

struct JobsArguments {
  bool active = false;
  std::string problem;
  std::string sweep;
  std::string operation;
  std::string timeline;
  int64_t limit = 50;
};

Color ColorOf(v1::Operation::State state) {
  switch (state) {
    case v1::Operation::STATE_SUCCEEDED:
      return Color::kGreen;
    case v1::Operation::STATE_FAILED:
      return Color::kRed;
    case v1::Operation::STATE_CANCELLED:
      return Color::kYellow;
    default:
      return Color::kCyan;
  }
}

// Of a sweep, its problems.
std::string DoneText(const v1::OperationProgress& progress) {
  if (progress.problems_total() > 0) {
    return absl::StrCat(progress.problems_done(), "/", progress.problems_total(), " problems");
  }
  return progress.trials_total() > 0 ? absl::StrCat(progress.trials_done(), "/", progress.trials_total(), " trials")
                                     : "";
}

// "3/5 problems", "play-off", "12/56 trials"; "2 ahead" of one that waits.
std::string ProgressText(const v1::Operation& operation) {
  const v1::OperationProgress& progress = operation.progress();
  if (operation.done()) return DoneText(progress);
  if (progress.queue_position() > 0) {
    return absl::StrCat(progress.queue_position(), " ahead");
  }
  const bool counts = progress.problems_total() > 0 || progress.phase() == v1::OperationProgress::PHASE_TRIALS;
  const std::string done = counts ? DoneText(progress) : "";
  return done.empty() ? Word(progress.phase()) : done;
}

// "1 of 20 problems FAILED" of a sweep that succeeded all the same; empty where nothing is amiss.
std::string MissedText(const v1::Operation& operation) {
  const v1::OperationProgress& progress = operation.progress();
  const bool said = operation.state() == v1::Operation::STATE_SUCCEEDED && progress.problems_total() > 0 &&
                    progress.message() != "done";
  return said ? OneLine(progress.message()) : "";
}

std::string What(const v1::Operation& operation) {
  if (operation.has_error()) return absl::StrCat(operation.title(), ": ", OneLine(operation.error().message()));
  if (const std::string missed = MissedText(operation); !missed.empty()) {
    return absl::StrCat(operation.title(), ": ", missed);
  }
  const std::string waits = WaitText(operation.progress());
  const std::string& card = operation.progress().device_id();
  // A title says where, but for a problem of a sweep, which any card may take. In a fleet that may be a class, or a
  // card's name without its host's.
  std::string where;
  if (!operation.parent().empty() && !card.empty()) {
    where = absl::StrCat(" on ", card);
  } else if (absl::StartsWith(card, "hosts/")) {
    where = absl::StrCat(" (", card, ")");
  }
  return absl::StrCat(operation.title(), where, operation.done() || waits.empty() ? "" : absl::StrCat(": ", waits));
}

// The cards that work or worked on an operation; of one that none has begun, those that its title ends with: "tune
// b2.h8.q512.d64.f16 on cuda:0". Empty when the server does not say.
std::vector<std::string> CardsOf(const v1::Operation& operation) {
  std::string cards = operation.progress().device_id();
  if (cards.empty()) cards = operation.sweep().device_id();
  constexpr absl::string_view kOn = " on ";
  const absl::string_view title = operation.title();
  if (const size_t on = title.rfind(kOn); cards.empty() && on != title.npos) {
    const absl::string_view rest = title.substr(on + kOn.size());
    cards = std::string(rest.substr(0, rest.find(": ")));
  }
  std::vector<std::string> names = absl::StrSplit(cards, ',', absl::SkipEmpty());
  for (size_t i = 0, count = names.size(); i < count; ++i) {
    // "hosts/gpu7-1a2b3c4d/devices/cuda:0" is a cuda:0, too.
    const std::pair<std::string, std::string> parts = absl::StrSplit(names[i], absl::MaxSplits("/devices/", 1));
    if (!parts.second.empty()) names.push_back(parts.second);
  }
  return names;
}

// What nothing here is called may be a card of the past.
absl::StatusOr<std::vector<std::string>> CardsAskedFor(Client& client, const std::string& device) {
  if (device.empty()) return std::vector<std::string>();
  absl::StatusOr<std::vector<std::string>> cards = CardsNamed(client, device);
  if (absl::IsNotFound(cards.status())) return std::vector<std::string>{device};
  return cards;
}

// Empty `cards` are all.
bool IsOn(const v1::Operation& operation, const std::vector<std::string>& cards) {
  const std::vector<std::string> its = CardsOf(operation);
  return cards.empty() || std::find_first_of(its.begin(), its.end(), cards.begin(), cards.end()) != its.end();
}

Table JobsTable() {
  return Table(
      {{"operation"}, {"state"}, {"progress"}, {"best us", kNumber, 1}, {"created", kText, 2}, {"what", kFlexible}});
}

void AddRow(const v1::Operation& operation, Table* table) {
  const v1::OperationProgress& progress = operation.progress();
  table->Row({operation.name(),
              {Word(operation.state()), ColorOf(operation.state())},
              ProgressText(operation),
              Micros(progress.best().timing().median_us()),
              LocalTime(operation.create_time()),
              What(operation)});
}

absl::StatusOr<ExitCode> WriteTimeline(Session& session, Client& client, const JobsArguments& arguments) {
  const auto operation = client.GetOperation(ResourceName("operations", arguments.operation));
  if (!operation.ok()) return operation.status();
  if (operation->has_sweep() || operation->progress().problems_total() > 0) {
    return absl::FailedPreconditionError(absl::StrCat(operation->name(),
                                                      " is a sweep, whose problems are operations of ",
                                                      "their own: `attune jobs --sweep ", operation->name(), "`"));
  }
  v1::ListTrialsRequest request;
  request.mutable_filter()->set_job(operation->name());
  std::vector<v1::Trial> trials;
  absl::Status status = ForEach(client, &Client::ListTrials, &v1::ListTrialsResponse::trials, request, kAll,
                                [&](const v1::Trial& trial) { trials.push_back(trial); });
  if (!status.ok()) return status;
  status = ReplaceFile(arguments.timeline, absl::StrCat(JsonText(TimelineJson(*operation, trials)), "\n"));
  if (!status.ok()) return status;
  session.Note(absl::StrCat(arguments.timeline, ": ", Counted(static_cast<int64_t>(trials.size()), "trial"),
                            "; open it at https://ui.perfetto.dev"));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ShowOne(Session& session, Client& client, const JobsArguments& arguments) {
  const auto operation = client.GetOperation(ResourceName("operations", arguments.operation));
  if (!operation.ok()) return operation.status();
  if (session.json()) {
    session.Emit(OperationJson(*operation));
  } else {
    Table table = JobsTable();
    AddRow(*operation, &table);
    session.Print(table);
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunJobs(Session& session, const JobsArguments& arguments) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  if (!arguments.timeline.empty()) return WriteTimeline(session, **client, arguments);
  if (!arguments.operation.empty()) return ShowOne(session, **client, arguments);
  v1::ListOperationsRequest request;
  request.set_active_only(arguments.active);
  const auto problem = CanonicalText(arguments.problem);
  if (!problem.ok()) return problem.status();
  request.set_problem(*problem);
  if (!arguments.sweep.empty()) request.set_parent(ResourceName("operations", arguments.sweep));
  const auto cards = CardsAskedFor(**client, session.options().device);
  if (!cards.ok()) return cards.status();
  int count = 0;
  Table table = JobsTable();
  const absl::Status status = ForEach(**client, &Client::ListOperations, &v1::ListOperationsResponse::operations,
                                      request, arguments.limit, [&](const v1::Operation& operation) {
                                        if (!IsOn(operation, *cards)) return false;
                                        ++count;
                                        if (session.json()) {
                                          session.Emit(OperationJson(operation));
                                        } else {
                                          AddRow(operation, &table);
                                        }
                                        return true;
                                      });
  if (!status.ok()) return status;
  if (count == 0) {
    if (absl::Status known = CheckDevice(**client, session.options().device); !known.ok()) return known;
    if (absl::Status known = CheckOperation(**client, request.parent()); !known.ok()) return known;
  }
  if (session.json()) return ExitCode::kOk;
  if (count == 0) {
    session.Note("No operations.");
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddJobs(CLI::App& app) {
  auto arguments = std::make_shared<JobsArguments>();
  CLI::Option* active = app.add_flag("--active", arguments->active, "Only operations that are queued or running");
  CLI::Option* problem =
      app.add_option("--problem", arguments->problem, "Only operations that tune or evaluate this problem");
  CLI::Option* sweep =
      app.add_option("--sweep", arguments->sweep,
                     "The problems of this sweep, each an operation of its own; without it those of no sweep");
  CLI::Option* operation = app.add_option("operation", arguments->operation, "Only this one: operations/7, or 7");
  CLI::Option* timeline = app.add_option(
      "--timeline", arguments->timeline,
      "Write what each worker did for the operation to this file, as a trace that https://ui.perfetto.dev opens");
  operation->excludes(active)->excludes(problem)->excludes(sweep);
  timeline->needs(operation);
  AddCount(app, "--limit", &arguments->limit, "At most this many; 0: all; default 50");
  return [arguments](Session& session) { return RunJobs(session, *arguments); };
}

}  // namespace attune::cli
