// attune help: what --help says, as a command.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"

namespace attune::cli {

Action AddHelp(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("command", *name, "The command; default: all of them, in a line each");
  return [name, &app](Session& session) -> absl::StatusOr<ExitCode> {
    const CLI::App& all = *app.get_parent();
    const auto named = all.get_subcommands([&](const CLI::App* command) { return command->get_name() == *name; });
    if (!name->empty() && named.empty()) {
      return absl::InvalidArgumentError(NoSuchCommand(*name));
    }
    const CLI::App* const one = named.empty() ? nullptr : named.front();
    // App::help() of all commands would be that of this one, which was chosen.
    const std::string called = one == nullptr ? all.get_name() : absl::StrCat(all.get_name(), " ", *name);
    session.env().out << all.get_formatter()->make_help(one == nullptr ? &all : one, called,
                                                        CLI::AppFormatMode::Normal);
    return ExitCode::kOk;
  };
}

}  // namespace attune::cli
