// attune serve: makes a given variant the incumbent and pins it.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/follow.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct ServeArguments {
  std::string problem;
  std::string variant;
  std::string why;
  bool unpin = false;
  bool detach = false;
};

absl::StatusOr<ExitCode> Unpin(Session& session, Client& client, const Problem& problem) {
  v1::UnpinRequest request;
  *request.mutable_problem() = attune::ToProto(problem);
  request.set_device_id(session.options().device);
  request.set_policy(session.policy());
  BestQuery query;
  query.problem = problem;
  query.device_id = request.device_id();
  query.policy = request.policy();
  const auto before = client.GetBest(query);
  const bool was_pinned = !before.ok() || (*before)->pinned();
  const auto served = client.Unpin(request);
  if (!served.ok()) return served.status();
  if (session.json()) {
    session.Emit(IncumbentJson(*served));
  } else {
    session.Print(absl::StrCat(was_pinned ? "unpinned: " : "was not pinned: ", VariantText(served->trial().variant()),
                               " is served until a faster one is found"));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunServe(Session& session, const ServeArguments& arguments) {
  const auto problem = ParseProblem(arguments.problem);
  if (!problem.ok()) return problem.status();
  if (arguments.unpin == !arguments.variant.empty()) {
    return absl::InvalidArgumentError("give a VARIANT to serve, or --unpin (see attune serve --help)");
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  if (arguments.unpin) return Unpin(session, **client, *problem);
  v1::EvaluateVariantRequest request;
  *request.mutable_problem() = attune::ToProto(*problem);
  request.set_device_id(session.options().device);
  request.set_policy(session.policy());
  request.mutable_variant()->set_text(arguments.variant);
  request.set_pin(true);
  request.set_why(arguments.why);
  return FollowUnless(arguments.detach, session, (*client)->Evaluate(std::move(request)));
}

}  // namespace

Action AddServe(CLI::App& app) {
  auto arguments = std::make_shared<ServeArguments>();
  AddProblemArgument(app, &arguments->problem)->required();
  app.add_option("variant", arguments->variant, "The variant, as `attune space --list` prints it");
  app.add_flag("--unpin", arguments->unpin, "Let faster variants replace the pinned one again");
  app.add_option("--why", arguments->why, "The reason, for the history");
  app.add_flag("--detach", arguments->detach, "Print the operation's name and do not wait for it");
  return [arguments](Session& session) { return RunServe(session, *arguments); };
}

}  // namespace attune::cli
