// attune tune: starts tuning a problem and follows it.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/conditions.h"
#include "client/cli/follow.h"
#include "client/cli/problems.h"
#include "client/cli/search_options.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct TuneArguments {
  std::vector<std::string> problems;
  std::vector<std::string> families;
  SearchOptions search;
  int64_t max_trials = 0;
  std::string max_time;
  uint64_t seed = 0;
  bool retry_known = false;
  bool check_all = false;
  bool energy = false;
  v1::Objective objective = v1::OBJECTIVE_UNSPECIFIED;
  int64_t cards = 1;
  bool background = false;
  bool detach = false;
  std::string request_id;
  bool ignore_advice = false;
  Conditions conditions;
  std::vector<std::string> required;
  std::vector<std::string> seed_from;
};

// But for the problem.
absl::StatusOr<v1::TuneRequest> ToRequest(const Session& session, const TuneArguments& arguments) {
  v1::TuneRequest request;
  request.set_request_id(arguments.request_id);
  request.set_device_id(session.options().device);
  request.set_policy(session.policy());
  for (const std::string& family : arguments.families) request.add_families(family);
  v1::Strategy& strategy = *request.mutable_strategy();
  const absl::StatusOr<v1::Strategy::Kind> kind = KindOf(arguments.search);
  if (!kind.ok()) return kind.status();
  strategy.set_kind(*kind == v1::Strategy::KIND_UNSPECIFIED ? v1::Strategy::KIND_GUIDED : *kind);
  strategy.set_effort(EffortOf(arguments.search));
  strategy.set_max_trials(arguments.max_trials);
  strategy.set_seed(arguments.seed);
  if (!arguments.max_time.empty()) {
    const auto max_time = ParseDuration("--max-time", arguments.max_time);
    if (!max_time.ok()) return max_time.status();
    *strategy.mutable_max_time() = ToProto(*max_time);
  }
  request.set_retry_known(arguments.retry_known);
  request.set_check_all(arguments.check_all);
  request.set_energy(arguments.energy);
  request.set_objective(arguments.objective);
  if (arguments.cards > 1) request.set_cards(arguments.cards);
  request.set_background(arguments.background);
  request.set_ignore_advice(arguments.ignore_advice);
  if (absl::Status status = AddConditions(arguments.conditions, request.mutable_where()); !status.ok()) return status;
  for (const std::string& variant : arguments.required) request.add_required()->set_text(variant);
  for (const std::string& text : arguments.seed_from) {
    const absl::StatusOr<std::string> problem = CanonicalText(text);
    if (!problem.ok()) return problem.status();
    request.add_seed_from(*problem);
  }
  return request;
}

absl::StatusOr<ExitCode> RunTune(Session& session, const TuneArguments& arguments) {
  const auto problems = ReadProblems(session, arguments.problems);
  if (!problems.ok()) return problems.status();
  if (problems->size() > 1 && !arguments.request_id.empty()) {
    return absl::InvalidArgumentError("--request-id names one operation; it cannot go with several problems");
  }
  const auto request = ToRequest(session, arguments);
  if (!request.ok()) return request.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  // All are queued before the first is followed, so that the next compiles ahead while one has the device.
  std::map<std::string, v1::Operation> started;
  const auto queued = ForEachProblem(session, *problems, [&](const Problem& problem) -> absl::StatusOr<ExitCode> {
    v1::TuneRequest one = *request;
    *one.mutable_problem() = attune::ToProto(problem);
    auto operation = (*client)->Tune(std::move(one));
    if (!operation.ok()) return operation.status();
    started[ToText(problem)] = *std::move(operation);
    return ExitCode::kOk;
  });
  if (!queued.ok()) return queued.status();
  const auto followed = ForEachProblem(session, *problems, [&](const Problem& problem) -> absl::StatusOr<ExitCode> {
    const auto operation = started.find(ToText(problem));
    if (operation == started.end()) return ExitCode::kOk;  // said already
    return FollowUnless(arguments.detach, session, operation->second);
  });
  // What could not be queued came first.
  const bool goes_before = !followed.ok() || *followed == ExitCode::kInterrupted || *queued == ExitCode::kOk;
  return goes_before ? followed : queued;
}

}  // namespace

Action AddTune(CLI::App& app) {
  auto arguments = std::make_shared<TuneArguments>();
  AddSeveralProblemsArgument(app, &arguments->problems)->required();
  AddRepeatable(app, "--family", &arguments->families, "Only these families");
  AddSearchOptions(app, "Default: guided", &arguments->search);
  AddCount(app, "--max-trials", &arguments->max_trials,
           "Stop after this many trials; of exhaustive and random, reused ones included; 0: no limit");
  app.add_option("--max-time", arguments->max_time, "Stop this long after the first trial: 30s, 5m, 1h30m");
  AddCount(app, "--seed", &arguments->seed, "Seed of all strategies but exhaustive; 0: chosen by the server");
  app.add_flag("--retry-known", arguments->retry_known,
               "Try variants again that were tried with today's sources, compiler and driver");
  app.add_flag(
      "--check-all", arguments->check_all,
      "Check all of each variant, however slow it is: without it, what is clearly slower after one checked run "
      "and a few samples is given up as SLOW");
  app.add_flag("--energy", arguments->energy,
               "Measure also what a run of each variant in the play-off takes in joules, about a second for each; with "
               "--policy hot or l2-warm, on a card whose energy NVML counts. What is served is still the fastest");
  AddObjective(app, &arguments->objective,
               "What to find the best by, besides time (the default): energy (joules a run) or edp (energy-delay "
               "product, joules times seconds). Eight of the fastest variants then play off, with --energy, and best "
               "--objective answers the one with the least. What is served otherwise is still the fastest");
  app.add_option("--cards", arguments->cards,
                 "Spread the trials over so many cards of one class of the server, which --device names (by default "
                 "that of its first card); what is served is decided on one of them")
      ->check(CLI::Range(1, 1024))
      ->default_val(1)
      ->type_name("N");
  app.add_flag("--ignore-advice", arguments->ignore_advice, kIgnoreAdviceHelp);
  AddConditionOptions(app, &arguments->conditions);
  AddRepeatable(app, "--require", &arguments->required,
                "Try this variant, family:NAME=VALUE,..., in any case and before those that are guessed or drawn");
  AddRepeatable(app, "--seed-from", &arguments->seed_from,
                "Begin with what did best for this problem: what it is served, and its fastest trials");
  app.add_flag("--background", arguments->background, "Run at background priority: every other job goes first");
  app.add_flag("--detach", arguments->detach, "Print the operation's name and do not wait for it");
  app.add_option("--request-id", arguments->request_id, "The same id starts the same operation once");
  return [arguments](Session& session) { return RunTune(session, *arguments); };
}

}  // namespace attune::cli
