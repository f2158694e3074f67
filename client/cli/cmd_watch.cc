// attune watch: follows an operation that somebody started.
#include "client/cli/command.h"
#include "client/cli/follow.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

absl::StatusOr<ExitCode> RunWatch(Session& session, const std::string& operation) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto started = (*client)->GetOperation(ResourceName("operations", operation));
  if (!started.ok()) return started.status();
  return Follow(session, *started);
}

}  // namespace

Action AddWatch(CLI::App& app) {
  auto operation = std::make_shared<std::string>();
  app.add_option("operation", *operation, "As `attune jobs` lists it: operations/7, or 7")->required();
  return [operation](Session& session) { return RunWatch(session, *operation); };
}

}  // namespace attune::cli
