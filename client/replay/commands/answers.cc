// What a daemon answers and advises that has tuned what was recorded.
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/files.h"
#include "client/replay/advice.h"
#include "client/replay/commands/commands.h"
#include "client/replay/nearest.h"
#include "client/replay/portfolio_loss.h"
#include "client/replay/prior.h"
#include "client/replay/recorded_space.h"
#include "server/base/device_profile.h"

namespace attune::replay {
namespace {

struct RecordedArguments {
  std::vector<std::string> files;
  std::string kernels = ATTUNE_SOURCE_DIR "/kernels_src";
  std::string device = "h100";
};

void AddRecorded(CLI::App& command, const std::string& which, RecordedArguments& recorded) {
  command.add_option("RECORDING", recorded.files, which)->required();
  command.add_option("--kernels", recorded.kernels, "The kernel families that were recorded")->capture_default_str();
  command.add_option("--device", recorded.device, "The profile of the device that they were recorded on")
      ->capture_default_str();
}

// What was recorded, of which families and where.
struct Recorded {
  std::vector<v1::Recording> recordings;
  Families families;
  attune::v1::Device device;
};

absl::StatusOr<Recorded> ReadRecorded(const RecordedArguments& arguments) {
  auto families = space::LoadFamilies(arguments.kernels);
  if (!families.ok()) return families.status();
  absl::StatusOr<attune::v1::Device> device = DeviceProfile(arguments.device);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::vector<v1::Recording>> recordings = ReadRecordings(arguments.files);
  if (!recordings.ok()) return recordings.status();
  return Recorded{*std::move(recordings), *std::move(families), *std::move(device)};
}

struct AdviceArguments {
  RecordedArguments recorded;
  size_t trials = 200;
  uint64_t seed = 1;
};

absl::Status RunAdvice(const AdviceArguments& arguments) {
  const absl::StatusOr<Recorded> recorded = ReadRecorded(arguments.recorded);
  if (!recorded.ok()) return recorded.status();
  const absl::StatusOr<AdviceTally> tally =
      TryAdvice(recorded->recordings, recorded->families, recorded->device, arguments.trials, arguments.seed);
  if (!tally.ok()) return tally.status();
  std::cout << Markdown(*tally);
  return absl::OkStatus();
}

struct NearestArguments {
  RecordedArguments recorded;
  std::vector<std::string> prior;
};

absl::Status RunNearest(const NearestArguments& arguments) {
  const absl::StatusOr<Recorded> recorded = ReadRecorded(arguments.recorded);
  if (!recorded.ok()) return recorded.status();
  const absl::StatusOr<std::vector<v1::Recording>> prior = ReadRecordings(arguments.prior);
  if (!prior.ok()) return prior.status();
  const absl::StatusOr<std::string> tables =
      CompareAnswers(recorded->recordings, *prior, recorded->families, recorded->device);
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
  return ReplaceFile(arguments.out, ToText(*table));
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

}  // namespace

void AddAdvice(CLI::App& app, absl::Status& status) {
  const auto advice = std::make_shared<AdviceArguments>();
  CLI::App& command =
      *app.add_subcommand("advice", "How often the parameter that `attune explain` names for a trial makes it faster");
  AddRecorded(command, "Recordings", advice->recorded);
  command.add_option("--trials", advice->trials, "Explain this many, drawn from all")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--seed", advice->seed, "Of the draw")->capture_default_str();
  command.callback([advice, &status] { status = RunAdvice(*advice); });
}

void AddNearest(CLI::App& app, absl::Status& status) {
  const auto nearest = std::make_shared<NearestArguments>();
  CLI::App& command = *app.add_subcommand(
      "nearest",
      "How much slower than the best the answers are for problems that were never tuned: each of these "
      "answered from the others");
  AddRecorded(command, "Two recordings or more of one class of device", nearest->recorded);
  command
      .add_option("--prior", nearest->prior,
                  "Also answer from this recording alone, of another class of device; as often as there are some")
      ->allow_extra_args(false);
  command.callback([nearest, &status] { status = RunNearest(*nearest); });
}

void AddPrior(CLI::App& app, absl::Status& status) {
  const auto prior = std::make_shared<PriorArguments>();
  CLI::App& command = *app.add_subcommand("prior", "Makes the table that a fresh install answers and learns from");
  command.add_option("RECORDING", prior->files, "Recordings of one class of device")->required();
  command.add_option("--out", prior->out, "Write it here: server/catalog/prior/FAMILY.DEVICE.txt")->required();
  command.add_option("--family", prior->family, "Whose variants")->capture_default_str();
  command.add_option("--device", prior->device, "The profile of the device that they were recorded on")
      ->capture_default_str();
  command.callback([prior, &status] { status = RunPrior(*prior); });
}

void AddPortfolio(CLI::App& app, absl::Status& status) {
  const auto portfolio = std::make_shared<PortfolioArguments>();
  CLI::App& command = *app.add_subcommand(
      "portfolio", "How much slower than its best each problem is with the few variants that `attune portfolio` keeps");
  command.add_option("RECORDING", portfolio->files, "Recordings of one class of device")->required();
  command.add_option("--variants", portfolio->variants, "Keep this many at most")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.callback([portfolio, &status] { status = RunPortfolio(*portfolio); });
}

}  // namespace attune::replay
