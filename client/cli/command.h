// The one table of commands: help, completion, documentation tests and dispatch all read it.
#ifndef ATTUNE_CLIENT_CLI_COMMAND_H_
#define ATTUNE_CLIENT_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/session.h"

namespace attune::cli {

// What a command does once its arguments are read. The Status of a failure becomes the one line on stderr.
using Action = std::function<absl::StatusOr<ExitCode>(Session&)>;

struct Command {
  absl::string_view name;
  absl::string_view summary;   // one line of `attune --help`
  absl::string_view examples;  // a command line a line
  // Declares the command's own arguments on `app` and returns what to do with them. The arguments live as long as the
  // action.
  Action (*add)(CLI::App& app);
};

// What is said of a word that is the name of none.
std::string NoSuchCommand(absl::string_view word);

// In the order of `attune --help`.
const std::vector<Command>& Commands();

// One a file, cmd_<name>.cc; adopt and withdraw beside submissions, sanitize beside profile.
Action AddPreflight(CLI::App& app);
Action AddDevices(CLI::App& app);
Action AddFamilies(CLI::App& app);
Action AddSpace(CLI::App& app);
Action AddTune(CLI::App& app);
Action AddBest(CLI::App& app);
Action AddWarm(CLI::App& app);
Action AddMisses(CLI::App& app);
Action AddTrials(CLI::App& app);
Action AddExplain(CLI::App& app);
Action AddEvaluate(CLI::App& app);
Action AddSubmit(CLI::App& app);
Action AddSubmissions(CLI::App& app);
Action AddAdopt(CLI::App& app);
Action AddProfile(CLI::App& app);
Action AddSanitize(CLI::App& app);
Action AddWithdraw(CLI::App& app);
Action AddNewKernel(CLI::App& app);
Action AddSweep(CLI::App& app);
Action AddPortfolio(CLI::App& app);
Action AddJobs(CLI::App& app);
Action AddWatch(CLI::App& app);
Action AddCancel(CLI::App& app);
Action AddRetry(CLI::App& app);
Action AddHistory(CLI::App& app);
Action AddTrends(CLI::App& app);
Action AddCompare(CLI::App& app);
Action AddRollback(CLI::App& app);
Action AddServe(CLI::App& app);
Action AddBaseline(CLI::App& app);
Action AddSummary(CLI::App& app);
Action AddDashboard(CLI::App& app);
Action AddExport(CLI::App& app);
Action AddImport(CLI::App& app);
Action AddBackup(CLI::App& app);
Action AddBlobs(CLI::App& app);
Action AddHosts(CLI::App& app);
Action AddToken(CLI::App& app);
Action AddWhoami(CLI::App& app);
Action AddCompletion(CLI::App& app);
Action AddHelp(CLI::App& app);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_COMMAND_H_
