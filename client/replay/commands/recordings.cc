// Recordings: made, and written for others.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/files.h"
#include "client/replay/commands/commands.h"
#include "client/replay/export.h"
#include "client/replay/fetch.h"
#include "client/replay/record.h"
#include "client/replay/recorded_space.h"

namespace attune::replay {
namespace {

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
    return directory.empty() ? absl::OkStatus() : ReplaceFile(path.string(), text(recording));
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

}  // namespace

void AddExport(CLI::App& app, absl::Status& status) {
  const auto exported = std::make_shared<ExportArguments>();
  CLI::App& command =
      *app.add_subcommand("export", "Writes recordings as PROBLEM.json for other tuners, one family of each");
  command.add_option("RECORDING", exported->files, "Recordings")->required();
  command.add_option("--family", exported->family, "The family; needed where a recording has several");
  command.add_option("--kernel-tuner", exported->kernel_tuner, "Directory for Kernel Tuner's cache files")
      ->check(CLI::ExistingDirectory);
  command.add_option("--t4", exported->t4, "Directory for results of the T4 schema")->check(CLI::ExistingDirectory);
  command.callback([exported, &status] { status = RunExport(*exported); });
}

void AddRecord(CLI::App& app, absl::Status& status) {
  const auto record = std::make_shared<RecordArguments>();
  CLI::App& command =
      *app.add_subcommand("record", "Makes recordings of problems that a server has tuned exhaustively");
  command.add_option("PROBLEM", record->problems, "Problems")->required();
  command.add_option("--server", record->server, "host:port or unix:/path")->envname("ATTUNE_SERVER")->required();
  command.add_option("--device", record->device, "A card by id or UUID; default the server's first");
  command.add_option("--policy", record->policy, "hot, l2-warm or cold")
      ->check(CLI::IsMember({"hot", "l2-warm", "cold"}))
      ->capture_default_str();
  command.add_option("--kernels", record->kernels, "The kernel families that the server has")->capture_default_str();
  command.add_option("--out", record->out, "Directory for PROBLEM.rec")->capture_default_str();
  command.callback([record, &status] { status = RunRecord(*record); });
}

}  // namespace attune::replay
