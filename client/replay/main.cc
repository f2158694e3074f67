// attune-replay: strategies on recorded spaces, without a device (docs/replay.md).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/replay/advice.h"
#include "client/replay/calibration.h"
#include "client/replay/export.h"
#include "client/replay/fetch.h"
#include "client/replay/league.h"
#include "client/replay/nearest.h"
#include "client/replay/portfolio_loss.h"
#include "client/replay/prior.h"
#include "client/replay/record.h"
#include "client/replay/recorded_space.h"
#include "client/replay/regret.h"
#include "client/replay/replay.h"
#include "client/replay/search_times.h"
#include "client/replay/seeding.h"
#include "client/replay/synthetic_space.h"
#include "client/replay/warm.h"
#include "server/base/device_profile.h"

namespace attune::replay {
namespace {

struct SpaceArguments {
  std::vector<std::string> files;
  std::string family;
  int synthetic = 0;
  bool warm = false;
  std::string begin_with;  // "served", "shipped"; empty: neither
  std::string kernels = ATTUNE_SOURCE_DIR "/kernels_src";
  std::vector<std::string> only;  // problems; empty: all
};

// Of all families when `family` is empty.
absl::StatusOr<v1::Recording> ReadFamily(const std::string& file, const std::string& family) {
  absl::StatusOr<v1::Recording> recording = ReadRecording(file);
  if (!recording.ok() || family.empty()) return recording;
  return OnlyFamily(*recording, family);
}

// Leaves out the spaces of other problems.
absl::Status KeepOnly(const std::vector<std::string>& problems, std::vector<RecordedSpace>& spaces) {
  for (const std::string& problem : problems) {
    if (std::any_of(spaces.begin(), spaces.end(), [&](const RecordedSpace& space) { return space.name == problem; })) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("--only is '", problem, "'; no recording is of it"));
  }
  std::erase_if(spaces, [&](const RecordedSpace& space) {
    return !problems.empty() && std::find(problems.begin(), problems.end(), space.name) == problems.end();
  });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RecordedSpace>> Load(const SpaceArguments& arguments) {
  std::vector<v1::Recording> recordings;
  std::vector<RecordedSpace> spaces;
  for (const std::string& file : arguments.files) {
    absl::StatusOr<v1::Recording> recording = ReadFamily(file, arguments.family);
    if (!recording.ok()) return recording.status();
    absl::StatusOr<RecordedSpace> space = SpaceOf(*recording);
    if (!space.ok()) return space.status();
    spaces.push_back(*std::move(space));
    recordings.push_back(*std::move(recording));
  }
  const bool shipped = arguments.begin_with == "shipped";
  const TunedWhere where = shipped ? TunedWhere::kBeforeShipping : TunedWhere::kHere;
  if (arguments.warm || shipped) Warm(recordings, where, spaces);
  if (!arguments.begin_with.empty()) {
    const auto families = space::LoadFamilies(arguments.kernels);
    if (!families.ok()) return families.status();
    absl::Status status = SeedFromOthers(recordings, where, *families, arguments.only, spaces);
    if (!status.ok()) return status;
  }
  if (absl::Status status = KeepOnly(arguments.only, spaces); !status.ok()) return status;
  for (int seed = 1; seed <= arguments.synthetic; ++seed) {
    SyntheticOptions options;
    options.seed = static_cast<uint64_t>(seed);
    spaces.push_back(SyntheticSpace(options));
    if (!arguments.warm) continue;
    options.shape = 0.4;
    spaces.back().field.neighbours.push_back(NeighbourOf(SyntheticSpace(options), 1));
  }
  for (RecordedSpace& space : spaces) {
    if (arguments.warm || shipped) continue;
    space.field.expected.clear();
    if (arguments.begin_with.empty()) space.field.likely.guesses.clear();
  }
  if (spaces.empty()) return absl::InvalidArgumentError("name recordings, or spaces to make with --synthetic");
  return spaces;
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

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
    if (absl::Status status = WriteFile(arguments.curves, CurvesCsv(*standings)); !status.ok()) return status;
  }
  return arguments.csv.empty() ? absl::OkStatus() : WriteFile(arguments.csv, Csv(*standings, arguments.options));
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
  return arguments.csv.empty() ? absl::OkStatus() : WriteFile(arguments.csv, Csv(ends));
}

struct AdviceArguments {
  std::vector<std::string> files;
  std::string kernels = ATTUNE_SOURCE_DIR "/kernels_src";
  std::string device = "h100";
  size_t trials = 200;
  uint64_t seed = 1;
};

absl::Status RunAdvice(const AdviceArguments& arguments) {
  const auto families = space::LoadFamilies(arguments.kernels);
  if (!families.ok()) return families.status();
  const absl::StatusOr<attune::v1::Device> device = DeviceProfile(arguments.device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<std::vector<v1::Recording>> recordings = ReadRecordings(arguments.files);
  if (!recordings.ok()) return recordings.status();
  const absl::StatusOr<AdviceTally> tally =
      TryAdvice(*recordings, *families, *device, arguments.trials, arguments.seed);
  if (!tally.ok()) return tally.status();
  std::cout << Markdown(*tally);
  return absl::OkStatus();
}

struct NearestArguments {
  std::vector<std::string> files;
  std::vector<std::string> prior;
  std::string kernels = ATTUNE_SOURCE_DIR "/kernels_src";
  std::string device = "h100";
};

absl::Status RunNearest(const NearestArguments& arguments) {
  const auto families = space::LoadFamilies(arguments.kernels);
  if (!families.ok()) return families.status();
  const absl::StatusOr<attune::v1::Device> device = DeviceProfile(arguments.device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<std::vector<v1::Recording>> recordings = ReadRecordings(arguments.files);
  if (!recordings.ok()) return recordings.status();
  const absl::StatusOr<std::vector<v1::Recording>> prior = ReadRecordings(arguments.prior);
  if (!prior.ok()) return prior.status();
  const absl::StatusOr<std::string> tables = CompareAnswers(*recordings, *prior, *families, *device);
  if (!tables.ok()) return tables.status();
  std::cout << *tables;
  return absl::OkStatus();
}

struct PriorArguments {
  std::vector<std::string> files;
  std::string device = "h100";
  std::string family = "attention_mma";
  std::string out;
};

absl::Status RunPrior(const PriorArguments& arguments) {
  const absl::StatusOr<attune::v1::Device> device = DeviceProfile(arguments.device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<std::vector<v1::Recording>> recordings = ReadRecordings(arguments.files);
  if (!recordings.ok()) return recordings.status();
  const absl::StatusOr<catalog::PriorTable> table = LearnPrior(*recordings, arguments.family, *device);
  if (!table.ok()) return table.status();
  return WriteFile(arguments.out, ToText(*table));
}

struct PortfolioArguments {
  std::vector<std::string> files;
  size_t variants = 4;
};

absl::Status RunPortfolio(const PortfolioArguments& arguments) {
  const absl::StatusOr<std::vector<v1::Recording>> recordings = ReadRecordings(arguments.files);
  if (!recordings.ok()) return recordings.status();
  const absl::StatusOr<std::string> tables = TryPortfolio(*recordings, arguments.variants);
  if (!tables.ok()) return tables.status();
  std::cout << *tables;
  return absl::OkStatus();
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

struct ExportArguments {
  std::vector<std::string> files;
  std::string family;
  std::string kernel_tuner;
  std::string t4;
};

absl::Status RunExport(const ExportArguments& arguments) {
  if (arguments.kernel_tuner.empty() && arguments.t4.empty()) {
    return absl::InvalidArgumentError("nothing to write; name a directory with --kernel-tuner, --t4 or both");
  }
  const auto write = [](const std::string& directory, const v1::Recording& recording,
                        std::string (*text)(const v1::Recording&)) {
    const auto path = std::filesystem::path(directory) / absl::StrCat(recording.problem(), ".json");
    return directory.empty() ? absl::OkStatus() : WriteFile(path.string(), text(recording));
  };
  for (const std::string& file : arguments.files) {
    const absl::StatusOr<v1::Recording> all = ReadRecording(file);
    if (!all.ok()) return all.status();
    if (const auto space = SpaceOf(*all); !space.ok()) return space.status();
    const absl::StatusOr<v1::Recording> recording = OnlyFamily(*all, arguments.family);
    if (!recording.ok()) return recording.status();
    absl::Status status = write(arguments.kernel_tuner, *recording, KernelTunerCache);
    status.Update(write(arguments.t4, *recording, T4Results));
    if (!status.ok()) return status;
    std::cout << absl::StrFormat("%s: %d variants of %s\n", recording->problem(), recording->rows_size(),
                                 recording->families(0).name());
  }
  return absl::OkStatus();
}

struct RecordArguments {
  std::vector<std::string> problems;
  std::string server;
  std::string kernels = ATTUNE_SOURCE_DIR "/kernels_src";
  std::string device;
  std::string policy = "hot";
  std::string out = ".";
};

absl::Status RunRecord(const RecordArguments& arguments) {
  const auto families = space::LoadFamilies(arguments.kernels);
  if (!families.ok()) return families.status();
  for (const std::string& text : arguments.problems) {
    const absl::StatusOr<Problem> problem = ParseProblem(text);
    if (!problem.ok()) return problem.status();
    const absl::StatusOr<StoredTrials> stored =
        FetchTrials(arguments.server, arguments.device, PolicyOf(arguments.policy), *problem);
    if (!stored.ok()) return stored.status();
    const absl::StatusOr<v1::Recording> recording = MakeRecording(*problem, stored->device, stored->trials, *families);
    if (!recording.ok()) return recording.status();
    const std::string path =
        (std::filesystem::path(arguments.out) / absl::StrCat(recording->problem(), ".rec")).string();
    if (absl::Status status = WriteRecording(*recording, path); !status.ok()) return status;
    std::cout << absl::StrFormat("%s: %d variants\n", path, recording->rows_size());
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

void AddSpaces(CLI::App& command, SpaceArguments& spaces) {
  command.add_option("RECORDING", spaces.files, "Recordings");
  command.add_option("--family", spaces.family, "Only this family's variants; default all");
  command.add_option("--synthetic", spaces.synthetic, "Add this many spaces drawn at random")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--warm", spaces.warm,
                   "Strategies know the families' guesses and the other recordings (of a synthetic space: a near one)");
  command
      .add_option("--begin-with", spaces.begin_with,
                  "Strategies begin with the other recordings' fastest variants, as a daemon that has tuned those "
                  "problems does (served), and with the families' guesses; or with all that one knows that was shipped "
                  "with the others (shipped)")
      ->check(CLI::IsMember({"served", "shipped"}));
  command.add_option("--only", spaces.only, "Run on this problem; the other recordings are there to learn from")
      ->allow_extra_args(false);
  command.add_option("--kernels", spaces.kernels, "With --begin-with: the kernel families that were recorded")
      ->capture_default_str();
}

int Main(int argc, char** argv) {
  CLI::App app("Runs search strategies on recorded spaces, without a device");
  app.require_subcommand(1);
  absl::Status status;

  LeagueArguments league;
  league.options.strategies = {"random", "evolution", "guided"};
  CLI::App& league_command = *app.add_subcommand(
      "league", "Trials that each strategy needs to come within some share of the best: median / 95th percentile");
  AddSpaces(league_command, league.spaces);
  league_command.add_option("--strategies", league.options.strategies, "Which")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  AddSeeds(league_command, league.options.seeds);
  league_command.add_option("--limit", league.options.limit, "Share of a space that is tried at most")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  league_command.add_option("--within", league.options.shares, "Of the best: shares")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  league_command.add_option("--csv", league.csv, "Write every run here");
  league_command.add_option("--curves", league.curves,
                            "Write here how the best of every run fell; runs then go on to --limit");
  league_command.callback([&] { status = RunLeague(league); });

  CalibrationArguments calibration;
  CLI::App& calibration_command =
      *app.add_subcommand("calibration", "How often guided is right when it says that it is sure of its best");
  AddSpaces(calibration_command, calibration.spaces);
  AddSeeds(calibration_command, calibration.seeds);
  calibration_command.add_option("--limit", calibration.limit, "Share of a space that is tried at most")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  calibration_command.callback([&] { status = RunCalibration(calibration); });

  TimedArguments timed;
  CLI::App& timed_command = *app.add_subcommand(
      "time", "How long `attune tune` would take with so many compilers and a device, from recorded compile times");
  AddSpaces(timed_command, timed.spaces);
  AddSeeds(timed_command, timed.options.seeds);
  timed_command.add_option("--within", timed.options.within, "Count the runs that come so near the best: a share")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  AddCompilers(timed_command, timed.options.host.compilers);
  timed_command.add_option("--trial-ms", timed.options.host.trial_ms, "The device's work of a trial")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  timed_command.add_option("--think-ms", timed.options.host.think_ms, "A plan of the strategy")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  timed_command.callback([&] { status = RunTimed(timed); });

  RegretArguments regret;
  CLI::App& regret_command = *app.add_subcommand(
      "regret", "How near the best a search with --effort ends, how often two seeds agree, and what it says of itself");
  AddSpaces(regret_command, regret.spaces);
  AddSeeds(regret_command, regret.options.seeds);
  regret_command.add_option("--effort", regret.effort, "quick, standard or full")
      ->check(CLI::IsMember({"quick", "standard", "full"}))
      ->capture_default_str();
  AddCompilers(regret_command, regret.options.host.compilers);
  regret_command.add_option("--csv", regret.csv, "Write every run here");
  regret_command.callback([&] { status = RunRegret(regret); });

  AdviceArguments advice;
  CLI::App& advice_command =
      *app.add_subcommand("advice", "How often the parameter that `attune explain` names for a trial makes it faster");
  advice_command.add_option("RECORDING", advice.files, "Recordings")->required();
  advice_command.add_option("--kernels", advice.kernels, "The kernel families that were recorded")
      ->capture_default_str();
  advice_command.add_option("--device", advice.device, "The profile of the device that they were recorded on")
      ->capture_default_str();
  advice_command.add_option("--trials", advice.trials, "Explain this many, drawn from all")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  advice_command.add_option("--seed", advice.seed, "Of the draw")->capture_default_str();
  advice_command.callback([&] { status = RunAdvice(advice); });

  ExportArguments exported;
  CLI::App& export_command =
      *app.add_subcommand("export", "Writes recordings as PROBLEM.json for other tuners, one family of each");
  export_command.add_option("RECORDING", exported.files, "Recordings")->required();
  export_command.add_option("--family", exported.family, "The family; needed where a recording has several");
  export_command.add_option("--kernel-tuner", exported.kernel_tuner, "Directory for Kernel Tuner's cache files")
      ->check(CLI::ExistingDirectory);
  export_command.add_option("--t4", exported.t4, "Directory for results of the T4 schema")
      ->check(CLI::ExistingDirectory);
  export_command.callback([&] { status = RunExport(exported); });

  NearestArguments nearest;
  CLI::App& nearest_command = *app.add_subcommand(
      "nearest",
      "How much slower than the best the answers are for problems that were never tuned: each of these "
      "answered from the others");
  nearest_command.add_option("RECORDING", nearest.files, "Two recordings or more of one class of device")->required();
  nearest_command
      .add_option("--prior", nearest.prior,
                  "Also answer from this recording alone, of another class of device; as often as there are some")
      ->allow_extra_args(false);
  nearest_command.add_option("--kernels", nearest.kernels, "The kernel families that were recorded")
      ->capture_default_str();
  nearest_command.add_option("--device", nearest.device, "The profile of the device that they were recorded on")
      ->capture_default_str();
  nearest_command.callback([&] { status = RunNearest(nearest); });

  PriorArguments prior;
  CLI::App& prior_command =
      *app.add_subcommand("prior", "Makes the table that a fresh install answers and learns from");
  prior_command.add_option("RECORDING", prior.files, "Recordings of one class of device")->required();
  prior_command.add_option("--out", prior.out, "Write it here: server/catalog/prior/FAMILY.DEVICE.txt")->required();
  prior_command.add_option("--family", prior.family, "Whose variants")->capture_default_str();
  prior_command.add_option("--device", prior.device, "The profile of the device that they were recorded on")
      ->capture_default_str();
  prior_command.callback([&] { status = RunPrior(prior); });

  PortfolioArguments portfolio;
  CLI::App& portfolio_command = *app.add_subcommand(
      "portfolio", "How much slower than its best each problem is with the few variants that `attune portfolio` keeps");
  portfolio_command.add_option("RECORDING", portfolio.files, "Recordings of one class of device")->required();
  portfolio_command.add_option("--variants", portfolio.variants, "Keep this many at most")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  portfolio_command.callback([&] { status = RunPortfolio(portfolio); });

  RunArguments run;
  CLI::App& run_command = *app.add_subcommand("run", "One run, trial by trial, as CSV");
  AddSpaces(run_command, run.spaces);
  run_command.add_option("--strategy", run.strategy, "Which")
      ->check(CLI::IsMember(StrategyNames()))
      ->capture_default_str();
  run_command.add_option("--seed", run.seed, "Its seed")->check(CLI::PositiveNumber)->capture_default_str();
  run_command.add_option("--trials", run.trials, "Stop after this many; 0: none is left")->capture_default_str();
  run_command.callback([&] { status = RunOne(run); });

  RecordArguments record;
  CLI::App& record_command =
      *app.add_subcommand("record", "Makes recordings of problems that a server has tuned exhaustively");
  record_command.add_option("PROBLEM", record.problems, "Problems")->required();
  record_command.add_option("--server", record.server, "host:port or unix:/path")->envname("ATTUNE_SERVER")->required();
  record_command.add_option("--device", record.device, "A card by id or UUID; default the server's first");
  record_command.add_option("--policy", record.policy, "hot, l2-warm or cold")
      ->check(CLI::IsMember({"hot", "l2-warm", "cold"}))
      ->capture_default_str();
  record_command.add_option("--kernels", record.kernels, "The kernel families that the server has")
      ->capture_default_str();
  record_command.add_option("--out", record.out, "Directory for PROBLEM.rec")->capture_default_str();
  record_command.callback([&] { status = RunRecord(record); });

  CLI11_PARSE(app, argc, argv);
  if (status.ok()) return 0;
  std::cerr << "attune-replay: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace attune::replay

int main(int argc, char** argv) { return attune::replay::Main(argc, argv); }
