// attune cancel: stops an operation, or all.
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/problems.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct CancelArguments {
  std::string operation;
  std::string problem;
  bool all = false;
};

absl::Status Cancel(Session& session, Client& client, const std::string& name) {
  const auto operation = client.Cancel(name);
  if (!operation.ok()) return operation.status();
  if (session.json()) {
    session.Emit(OperationJson(*operation));
  } else {
    session.Print(absl::StrCat(operation->name(), " ", operation->done() ? Word(operation->state()) : "cancelling"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> CancelAll(Session& session, Client& client, const CancelArguments& arguments) {
  v1::ListOperationsRequest request;
  request.set_active_only(true);
  const auto problem = CanonicalText(arguments.problem);
  if (!problem.ok()) return problem.status();
  request.set_problem(*problem);
  // Newest first, so that none starts because the one ahead of it has ended.
  std::vector<std::string> names;
  absl::Status status = ForEach(client, &Client::ListOperations, &v1::ListOperationsResponse::operations, request, kAll,
                                [&](const v1::Operation& operation) { names.push_back(operation.name()); });
  for (const std::string& name : names) {
    if (status.ok()) status = Cancel(session, client, name);
  }
  if (!status.ok()) return status;
  if (names.empty()) session.Note("No operation is queued or running.");
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunCancel(Session& session, const CancelArguments& arguments) {
  if (arguments.all == !arguments.operation.empty() || (!arguments.all && !arguments.problem.empty())) {
    return absl::InvalidArgumentError(
        "give an OPERATION, or --all, optionally with --problem (see attune cancel --help)");
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  if (arguments.all) return CancelAll(session, **client, arguments);
  if (absl::Status status = Cancel(session, **client, ResourceName("operations", arguments.operation)); !status.ok()) {
    return status;
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddCancel(CLI::App& app) {
  auto arguments = std::make_shared<CancelArguments>();
  app.add_option("operation", arguments->operation, "As `attune jobs` lists it: operations/7, or 7");
  app.add_flag("--all", arguments->all, "Cancel every operation that is queued or running");
  app.add_option("--problem", arguments->problem, "With --all: only those that tune or evaluate this problem");
  return [arguments](Session& session) { return RunCancel(session, *arguments); };
}

}  // namespace attune::cli
