#include "client/replay/commands/spaces.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replay/record.h"
#include "client/replay/seeding.h"
#include "client/replay/synthetic_space.h"
#include "client/replay/warm.h"

namespace attune::replay {
namespace {

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

}  // namespace

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

}  // namespace attune::replay
