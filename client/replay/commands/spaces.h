// The spaces that a command searches: recorded ones, and such as are drawn at random.
#ifndef ATTUNE_CLIENT_REPLAY_COMMANDS_SPACES_H_
#define ATTUNE_CLIENT_REPLAY_COMMANDS_SPACES_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/recorded_space.h"

namespace attune::replay {

struct SpaceArguments {
  std::vector<std::string> files;
  std::string family;
  int synthetic = 0;
  bool warm = false;
  std::string begin_with;  // "served", "shipped"; empty: neither
  std::string kernels = ATTUNE_SOURCE_DIR "/kernels_src";
  std::vector<std::string> only;  // problems; empty: all
};

// The options that fill in `spaces`.
void AddSpaces(CLI::App& command, SpaceArguments& spaces);

// With all that its strategies are to know before their first trial. InvalidArgument without any, and where --only is
// none of them.
absl::StatusOr<std::vector<RecordedSpace>> Load(const SpaceArguments& arguments);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_COMMANDS_SPACES_H_
