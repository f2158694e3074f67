// attune rollback: the previous incumbent again.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"

namespace attune::cli {
namespace {

struct RollbackArguments {
  std::string problem;
  std::string why;
  std::string to;
};

absl::StatusOr<ExitCode> RunRollback(Session& session, const RollbackArguments& arguments) {
  const auto problem = ParseProblem(arguments.problem);
  if (!problem.ok()) return problem.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::RollBackRequest request;
  *request.mutable_problem() = attune::ToProto(*problem);
  request.set_device_id(session.options().device);
  request.set_policy(session.policy());
  request.set_why(arguments.why);
  if (!arguments.to.empty()) request.set_to(ResourceName("incumbents", arguments.to));
  const auto served = (*client)->RollBack(request);
  if (!served.ok()) return served.status();
  if (session.json()) {
    session.Emit(IncumbentJson(*served));
  } else {
    session.Print(absl::StrCat("served again: ", VariantText(served->trial().variant()), "  ",
                               Micros(ServedTiming(*served).median_us()), " us", served->pinned() ? ", pinned" : ""));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddRollback(CLI::App& app) {
  auto arguments = std::make_shared<RollbackArguments>();
  AddProblemArgument(app, &arguments->problem)->required();
  app.add_option("--to", arguments->to,
                 "Go back to this earlier incumbent, as `attune history` lists it: incumbents/3, or 3");
  app.add_option("--why", arguments->why, "The reason, for the history");
  return [arguments](Session& session) { return RunRollback(session, *arguments); };
}

}  // namespace attune::cli
