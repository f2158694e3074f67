// attune evaluate: one given variant against the incumbent.
#include "absl/status/status.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/follow.h"

namespace attune::cli {
namespace {

struct EvaluateArguments {
  std::string problem;
  std::string variant;
  bool detach = false;
};

absl::StatusOr<ExitCode> RunEvaluate(Session& session, const EvaluateArguments& arguments) {
  const auto problem = ParseProblem(arguments.problem);
  if (!problem.ok()) return problem.status();
  if (arguments.variant.empty()) {
    return absl::InvalidArgumentError("variant is empty; `attune space --list` lists what is allowed");
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::EvaluateVariantRequest request;
  *request.mutable_problem() = attune::ToProto(*problem);
  request.set_device_id(session.options().device);
  request.set_policy(session.policy());
  request.mutable_variant()->set_text(arguments.variant);
  return FollowUnless(arguments.detach, session, (*client)->Evaluate(std::move(request)));
}

}  // namespace

Action AddEvaluate(CLI::App& app) {
  auto arguments = std::make_shared<EvaluateArguments>();
  AddProblemArgument(app, &arguments->problem)->required();
  app.add_option("variant", arguments->variant, "The variant, as `attune space --list` prints it")->required();
  app.add_flag("--detach", arguments->detach, "Print the operation's name and do not wait for it");
  return [arguments](Session& session) { return RunEvaluate(session, *arguments); };
}

}  // namespace attune::cli
