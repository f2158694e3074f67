// attune-replay's commands. Each `Add` gives `app` one, with its options; when it has run, `status` says how it ended.
#ifndef ATTUNE_CLIENT_REPLAY_COMMANDS_COMMANDS_H_
#define ATTUNE_CLIENT_REPLAY_COMMANDS_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace attune::replay {

// Searches on recorded spaces.
void AddLeague(CLI::App& app, absl::Status& status);
void AddCalibration(CLI::App& app, absl::Status& status);
void AddTime(CLI::App& app, absl::Status& status);
void AddRegret(CLI::App& app, absl::Status& status);
void AddRun(CLI::App& app, absl::Status& status);

// What a daemon answers and advises that has tuned what was recorded.
void AddAdvice(CLI::App& app, absl::Status& status);
void AddNearest(CLI::App& app, absl::Status& status);
void AddPrior(CLI::App& app, absl::Status& status);
void AddPortfolio(CLI::App& app, absl::Status& status);

// Recordings: made, and written for others.
void AddExport(CLI::App& app, absl::Status& status);
void AddRecord(CLI::App& app, absl::Status& status);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_COMMANDS_COMMANDS_H_
