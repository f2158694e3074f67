// attune import: checks a snapshot and puts it where answers come from when no server is reached.
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct ImportArguments {
  std::string file;
  bool view = false;
};

absl::Status Install(const Snapshot& snapshot, const std::string& path) {
  if (path.empty()) return absl::NotFoundError("HOME is not set; there is no place to keep the snapshot");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create the folder of '", path, "'"));
  return snapshot.Write(path);
}

void PrintAnswers(Session& session, const Snapshot& snapshot) {
  Table table({{"problem", kName},
               {"device", kText, 2},
               {"policy", kText, 1},
               {"provenance", kText, 3},
               {"time us", kNumber},
               {"variant", kVariant}});
  for (const SnapshotAnswer& entry : snapshot.answers()) {
    if (session.json()) {
      session.Emit(AnswerJson(*entry.answer, entry.request.policy()));
      continue;
    }
    table.Row({ProblemText(entry.request.problem()), entry.request.device_id(),
               std::string(attune::Word(entry.request.policy())), Word(entry.answer->provenance()),
               Micros(entry.answer->timing().median_us()), VariantText(entry.answer->variant())});
  }
  if (!session.json()) session.Print(table);
}

absl::StatusOr<ExitCode> RunImport(Session& session, const ImportArguments& arguments) {
  const auto snapshot = Snapshot::Load(arguments.file);
  if (!snapshot.ok()) return snapshot.status();
  if (!arguments.view) {
    if (absl::Status status = Install(**snapshot, session.imported_snapshot()); !status.ok()) return status;
  }
  PrintAnswers(session, **snapshot);
  session.Note(absl::StrCat(Counted(static_cast<int64_t>((*snapshot)->answers().size()), "answer"), ", exported ",
                            absl::FormatTime("%Y-%m-%d %H:%M UTC", (*snapshot)->exported(), absl::UTCTimeZone()),
                            arguments.view ? "" : absl::StrCat(", kept in ", session.imported_snapshot())));
  return ExitCode::kOk;
}

}  // namespace

Action AddImport(CLI::App& app) {
  auto arguments = std::make_shared<ImportArguments>();
  app.add_option("file", arguments->file, "The snapshot to read")->required();
  app.add_flag("--view", arguments->view, "Only show what is in it");
  return [arguments](Session& session) { return RunImport(session, *arguments); };
}

}  // namespace attune::cli
