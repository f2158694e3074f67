// attune sweep: a file of problems, and a report.
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/follow.h"
#include "client/cli/json.h"
#include "client/cli/sweep_plan.h"
#include "client/cpp/files.h"

namespace attune::cli {
namespace {

struct Arguments {
  std::string file;
  std::string report_md;
  std::string report_json;
  std::string request_id;
  bool detach = false;
};

absl::Status WriteReports(const Arguments& arguments, const v1::SweepReport& report) {
  if (!arguments.report_md.empty()) {
    if (absl::Status status = ReplaceFile(arguments.report_md, report.markdown()); !status.ok()) return status;
  }
  if (!arguments.report_json.empty()) {
    return ReplaceFile(arguments.report_json,
                       absl::StrCat(SweepJson(report).dump(2, ' ', false, Json::error_handler_t::replace), "\n"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Run(Session& session, const Arguments& arguments) {
  auto plan = ReadSweepPlan(arguments.file);
  if (!plan.ok()) return plan.status();
  if (!session.options().device.empty()) plan->set_device_id(session.options().device);
  if (!session.options().policy.empty()) plan->set_policy(session.policy());
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::SweepRequest request;
  request.set_request_id(arguments.request_id);
  *request.mutable_plan() = *std::move(plan);
  const auto started = (*client)->Sweep(std::move(request));
  return FollowUnless(arguments.detach, session, started, [&arguments](const v1::Operation& done) {
    return done.has_sweep() ? WriteReports(arguments, done.sweep()) : absl::OkStatus();
  });
}

}  // namespace

Action AddSweep(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("file", arguments->file, "An attune.v1.SweepPlan in protobuf text format")->required();
  app.add_option("--report-md", arguments->report_md, "Write the report here as Markdown");
  app.add_option("--report-json", arguments->report_json, "Write the report here as JSON");
  app.add_option("--request-id", arguments->request_id, "The same id starts the same sweep once");
  app.add_flag("--detach", arguments->detach, "Print the operation's name and do not wait for it");
  return [arguments](Session& session) { return Run(session, *arguments); };
}

}  // namespace attune::cli
