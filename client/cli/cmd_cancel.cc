// attune cancel: stops an operation between two trials.
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

absl::StatusOr<ExitCode> Run(Session& session, const std::string& name) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto operation = (*client)->Cancel(ResourceName("operations", name));
  if (!operation.ok()) return operation.status();
  if (session.json()) {
    session.Emit(OperationJson(*operation));
  } else {
    session.Print(absl::StrCat(operation->name(), " ", Word(operation->state()),
                               operation->done() ? "" : ", stops after the trial that is running"));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddCancel(CLI::App& app) {
  auto operation = std::make_shared<std::string>();
  app.add_option("operation", *operation, "As `attune jobs` lists it: operations/7, or 7")->required();
  return [operation](Session& session) { return Run(session, *operation); };
}

}  // namespace attune::cli
