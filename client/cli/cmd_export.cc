// attune export: the served incumbents as a snapshot file.
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct ExportArguments {
  std::string file;
  bool no_artifacts = false;
};

absl::StatusOr<ExitCode> RunExport(Session& session, const ExportArguments& arguments) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto summary = (*client)->ExportSnapshot(arguments.file, !arguments.no_artifacts);
  if (!summary.ok()) return summary.status();
  if (session.json()) {
    session.Emit({{"type", "export"},
                  {"file", arguments.file},
                  {"answers", summary->answers},
                  {"devices", summary->devices},
                  {"artifacts", !arguments.no_artifacts}});
  } else {
    session.Print(
        absl::StrCat("wrote ", Counted(static_cast<int64_t>(summary->answers), "answer"), " to ", arguments.file));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddExport(CLI::App& app) {
  auto arguments = std::make_shared<ExportArguments>();
  app.add_option("file", arguments->file, "The snapshot to write")->required();
  app.add_flag("--no-artifacts", arguments->no_artifacts, "Leave the compiled code out");
  return [arguments](Session& session) { return RunExport(session, *arguments); };
}

}  // namespace attune::cli
