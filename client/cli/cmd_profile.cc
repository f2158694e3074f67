// attune profile and attune sanitize: a trial's code under Nsight Compute, or under compute-sanitizer.
#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/follow.h"
#include "client/cli/profile_text.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct ProfileArguments {
  std::string subject;
  std::string variant;
  std::string problem;
  std::vector<std::string> tools;
  bool detach = false;
};

absl::StatusOr<v1::ProfiledCode> CodeOf(const Session& session, const ProfileArguments& arguments) {
  v1::ProfiledCode code;
  const std::string& subject = arguments.subject;
  const bool number = !subject.empty() && std::all_of(subject.begin(), subject.end(), absl::ascii_isdigit);
  const bool trial = number || absl::StartsWith(subject, "trials/");
  const bool submission = absl::StartsWith(subject, "submissions/");
  if (!arguments.variant.empty() && (trial || submission)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--variant is given with ", subject, "; it is allowed with a problem alone"));
  }
  if (!arguments.problem.empty() && !submission) {
    return absl::InvalidArgumentError(
        absl::StrCat("--problem is given with ", subject, "; it is allowed with a submission alone"));
  }
  if (trial) {
    code.set_trial(ResourceName("trials", subject));
    return code;
  }
  if (submission) code.set_submission(subject);
  const std::string& text = submission ? arguments.problem : subject;
  if (!submission || !text.empty()) {
    const auto problem = ParseProblem(text);
    if (!problem.ok()) return problem.status();
    *code.mutable_problem() = attune::ToProto(*problem);
  }
  if (!arguments.variant.empty()) code.mutable_variant()->set_text(arguments.variant);
  code.set_policy(session.policy());
  return code;
}

absl::StatusOr<ExitCode> RunProfile(Session& session, const ProfileArguments& arguments) {
  const auto code = CodeOf(session, arguments);
  if (!code.ok()) return code.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::ProfileRequest request;
  *request.mutable_code() = *code;
  request.set_device_id(session.options().device);
  return FollowUnless(arguments.detach, session, (*client)->Profile(std::move(request)));
}

absl::StatusOr<ExitCode> RunSanitize(Session& session, const ProfileArguments& arguments) {
  const auto code = CodeOf(session, arguments);
  if (!code.ok()) return code.status();
  v1::SanitizeRequest request;
  *request.mutable_code() = *code;
  request.set_device_id(session.options().device);
  for (const std::string& text : arguments.tools) {
    const auto tool = ParseSanitizer(text);
    if (!tool.ok()) return tool.status();
    request.add_tools(*tool);
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  return FollowUnless(arguments.detach, session, (*client)->Sanitize(std::move(request)));
}

std::shared_ptr<ProfileArguments> AddSubject(CLI::App& app) {
  auto arguments = std::make_shared<ProfileArguments>();
  app.add_option("subject", arguments->subject,
                 "A problem, for its best variant; a trial, as trials/123; or a submission, as submissions/7")
      ->required();
  app.add_option("--variant", arguments->variant, "Another variant of the problem that was tried");
  app.add_option("--problem", arguments->problem, "Of a submission of several problems, which");
  app.add_flag("--detach", arguments->detach, "Print the operation's name and do not wait for it");
  return arguments;
}

}  // namespace

Action AddProfile(CLI::App& app) {
  auto arguments = AddSubject(app);
  return [arguments](Session& session) { return RunProfile(session, *arguments); };
}

Action AddSanitize(CLI::App& app) {
  auto arguments = AddSubject(app);
  AddRepeatable(app, "--tool", &arguments->tools, "memcheck, racecheck, synccheck or initcheck; default: all four");
  return [arguments](Session& session) { return RunSanitize(session, *arguments); };
}

}  // namespace attune::cli
