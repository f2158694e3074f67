// Completion scripts, made from the declared commands and options themselves, so that they cannot go stale.
#ifndef ATTUNE_CLIENT_CLI_COMPLETION_H_
#define ATTUNE_CLIENT_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::cli {

struct CompletedOption {
  std::string name;  // "--format"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> values;  // all that are allowed; empty: anything
};

struct CompletedCommand {
  std::string name;
  std::string summary;
  std::vector<CompletedOption> options;
};

// What there is to complete: the subcommands of `app` with their options.
std::vector<CompletedCommand> CompletedCommands(const CLI::App& app);

// `shell` is bash, zsh or fish; InvalidArgument otherwise.
absl::StatusOr<std::string> CompletionScript(absl::string_view shell, const CLI::App& app);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_COMPLETION_H_
