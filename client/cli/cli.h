// The whole of `attune`, apart from the process it runs in.
#ifndef ATTUNE_CLIENT_CLI_CLI_H_
#define ATTUNE_CLIENT_CLI_CLI_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/environment.h"
#include "client/cli/session.h"

namespace attune::cli {

// The command line as declared: every command of Commands() with its options and the common ones.
class CommandLine {
 public:
  CommandLine();

  CLI::App& app() { return app_; }
  const CommonOptions& common() const { return common_; }
  // Of the command that was parsed.
  const Action& chosen() const;

 private:
  CLI::App app_;
  CommonOptions common_;
  std::vector<std::pair<CLI::App*, Action>> actions_;
};

// Runs `arguments` (without the program's name) and returns the exit code. Every failure is one line on env.err that
// begins "attune: ".
int RunCli(const std::vector<std::string>& arguments, Environment& env);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_CLI_H_
