// Searches on recorded spaces.
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cpp/files.h"
#include "client/replay/calibration.h"
#include "client/replay/commands/commands.h"
#include "client/replay/commands/spaces.h"
#include "client/replay/league.h"
#include "client/replay/regret.h"
#include "client/replay/replay.h"
#include "client/replay/search_times.h"

namespace attune::replay {
namespace {

struct LeagueArguments {
  SpaceArguments spaces;
  LeagueOptions options;
  std::string csv;
  std::string curves;
};

absl::Status RunLeague(LeagueArguments arguments) {
  arguments.options.whole = !arguments.curves.empty();
  const absl::StatusOr<std::vector<RecordedSpace>> spaces = Load(arguments.spaces);
  if (!spaces.ok()) return spaces.status();
  const absl::StatusOr<std::vector<Standing>> standings = PlayLeague(*spaces, arguments.options);
  if (!standings.ok()) return standings.status();
  std::cout << Markdown(*standings, arguments.options);
  if (!arguments.curves.empty()) {
    if (absl::Status status = ReplaceFile(arguments.curves, CurvesCsv(*standings)); !status.ok()) return status;
  }
  return arguments.csv.empty() ? absl::OkStatus() : ReplaceFile(arguments.csv, Csv(*standings, arguments.options));
}

struct CalibrationArguments {
  SpaceArguments spaces;
  int seeds = 10;
  double limit = 0.5;
};

absl::Status RunCalibration(const CalibrationArguments& arguments) {
  const absl::StatusOr<std::vector<RecordedSpace>> spaces = Load(arguments.spaces);
  if (!spaces.ok()) return spaces.status();
  const absl::StatusOr<std::vector<Calibration>> calibrations = Calibrate(*spaces, arguments.seeds, arguments.limit);
  if (!calibrations.ok()) return calibrations.status();
  std::cout << Markdown(*calibrations);
  return absl::OkStatus();
}

struct TimedArguments {
  SpaceArguments spaces;
  TimedOptions options;
};

absl::Status RunTimed(const TimedArguments& arguments) {
  const absl::StatusOr<std::vector<RecordedSpace>> spaces = Load(arguments.spaces);
  if (!spaces.ok()) return spaces.status();
  const absl::StatusOr<std::string> table = TimeSearches(*spaces, arguments.options);
  if (!table.ok()) return table.status();
  std::cout << *table;
  return absl::OkStatus();
}

const std::map<std::string, attune::v1::Strategy::Effort>& Efforts() {
  static const auto* const efforts =
      new std::map<std::string, attune::v1::Strategy::Effort>{{"quick", attune::v1::Strategy::EFFORT_QUICK},
                                                              {"standard", attune::v1::Strategy::EFFORT_STANDARD},
                                                              {"full", attune::v1::Strategy::EFFORT_FULL}};
  return *efforts;
}

struct RegretArguments {
  SpaceArguments spaces;
  RegretOptions options;
  std::string effort = "standard";
  std::string csv;
};

absl::Status RunRegret(RegretArguments arguments) {
  arguments.options.effort = Efforts().at(arguments.effort);
  const absl::StatusOr<std::vector<RecordedSpace>> spaces = Load(arguments.spaces);
  if (!spaces.ok()) return spaces.status();
  for (const RecordedSpace& space : *spaces) {
    if (arguments.options.host.compilers > 0 && space.compile_ms.empty()) return NoCompileTimes(space);
  }
  const std::vector<Ends> ends = SearchToTheEnd(*spaces, arguments.options);
  std::cout << Markdown(ends);
  return arguments.csv.empty() ? absl::OkStatus() : ReplaceFile(arguments.csv, Csv(ends));
}

struct RunArguments {
  SpaceArguments spaces;
  std::string strategy = "guided";
  uint64_t seed = 1;
  size_t trials = 0;
};

// The curve of one run, a line a trial.
absl::Status RunOne(const RunArguments& arguments) {
  const absl::StatusOr<std::vector<RecordedSpace>> spaces = Load(arguments.spaces);
  if (!spaces.ok()) return spaces.status();
  std::cout << "space,trial,candidate,us,best_us,above_best\n";
  for (const RecordedSpace& space : *spaces) {
    const auto strategy = StrategyNamed(arguments.strategy, space.field, arguments.seed);
    if (!strategy.ok()) return strategy.status();
    const size_t most = arguments.trials > 0 ? arguments.trials : space.outcomes.size();
    double best = 0;
    size_t trial = 0;
    for (size_t candidate : Replay(**strategy, space, most)) {
      const search::Outcome& outcome = space.outcomes[candidate];
      if (outcome.ok && (best == 0 || outcome.us < best)) best = outcome.us;
      std::cout << absl::StrFormat("%s,%d,%d,%s,%s,%s\n", space.name, ++trial, candidate,
                                   outcome.ok ? absl::StrFormat("%.6g", outcome.us) : "",
                                   best > 0 ? absl::StrFormat("%.6g", best) : "",
                                   best > 0 ? absl::StrFormat("%.4f", best / space.best_us - 1) : "");
    }
  }
  return absl::OkStatus();
}

void AddSeeds(CLI::App& app, int& seeds) {
  app.add_option("--seeds", seeds, "Runs of each search on each space")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void AddCompilers(CLI::App& app, int& compilers) {
  app.add_option("--compilers", compilers, "Codes compiled at once; 0: all code is there")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace

void AddLeague(CLI::App& app, absl::Status& status) {
  const auto league = std::make_shared<LeagueArguments>();
  league->options.strategies = {"random", "evolution", "guided"};
  CLI::App& command = *app.add_subcommand(
      "league", "Trials that each strategy needs to come within some share of the best: median / 95th percentile");
  AddSpaces(command, league->spaces);
  command.add_option("--strategies", league->options.strategies, "Which")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  AddSeeds(command, league->options.seeds);
  command.add_option("--limit", league->options.limit, "Share of a space that is tried at most")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  command.add_option("--within", league->options.shares, "Of the best: shares")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command.add_option("--csv", league->csv, "Write every run here");
  command.add_option("--curves", league->curves,
                     "Write here how the best of every run fell; runs then go on to --limit");
  command.callback([league, &status] { status = RunLeague(*league); });
}

void AddCalibration(CLI::App& app, absl::Status& status) {
  const auto calibration = std::make_shared<CalibrationArguments>();
  CLI::App& command =
      *app.add_subcommand("calibration", "How often guided is right when it says that it is sure of its best");
  AddSpaces(command, calibration->spaces);
  AddSeeds(command, calibration->seeds);
  command.add_option("--limit", calibration->limit, "Share of a space that is tried at most")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  command.callback([calibration, &status] { status = RunCalibration(*calibration); });
}

void AddTime(CLI::App& app, absl::Status& status) {
  const auto timed = std::make_shared<TimedArguments>();
  CLI::App& command = *app.add_subcommand(
      "time", "How long `attune tune` would take with so many compilers and a device, from recorded compile times");
  AddSpaces(command, timed->spaces);
  AddSeeds(command, timed->options.seeds);
  command.add_option("--within", timed->options.within, "Count the runs that come so near the best: a share")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  AddCompilers(command, timed->options.host.compilers);
  command.add_option("--trial-ms", timed->options.host.trial_ms, "The device's work of a trial")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--think-ms", timed->options.host.think_ms, "A plan of the strategy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.callback([timed, &status] { status = RunTimed(*timed); });
}

void AddRegret(CLI::App& app, absl::Status& status) {
  const auto regret = std::make_shared<RegretArguments>();
  CLI::App& command = *app.add_subcommand(
      "regret", "How near the best a search with --effort ends, how often two seeds agree, and what it says of itself");
  AddSpaces(command, regret->spaces);
  AddSeeds(command, regret->options.seeds);
  command.add_option("--effort", regret->effort, "quick, standard or full")
      ->check(CLI::IsMember({"quick", "standard", "full"}))
      ->capture_default_str();
  AddCompilers(command, regret->options.host.compilers);
  command.add_option("--csv", regret->csv, "Write every run here");
  command.callback([regret, &status] { status = RunRegret(*regret); });
}

void AddRun(CLI::App& app, absl::Status& status) {
  const auto run = std::make_shared<RunArguments>();
  CLI::App& command = *app.add_subcommand("run", "One run, trial by trial, as CSV");
  AddSpaces(command, run->spaces);
  command.add_option("--strategy", run->strategy, "Which")
      ->check(CLI::IsMember(StrategyNames()))
      ->capture_default_str();
  command.add_option("--seed", run->seed, "Its seed")->check(CLI::PositiveNumber)->capture_default_str();
  command.add_option("--trials", run->trials, "Stop after this many; 0: none is left")->capture_default_str();
  command.callback([run, &status] { status = RunOne(*run); });
}

}  // namespace attune::replay
