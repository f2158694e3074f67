// attune completion: what a shell needs to complete attune's command lines.
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/completion.h"

namespace attune::cli {

Action AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "The shell")->required()->check(OneOf({"bash", "zsh", "fish"}));
  return [shell, &app](Session& session) -> absl::StatusOr<ExitCode> {
    const auto script = CompletionScript(*shell, *app.get_parent());
    if (!script.ok()) return script.status();
    session.env().out << *script;
    return ExitCode::kOk;
  };
}

}  // namespace attune::cli
