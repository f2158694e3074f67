// attune backup: copies of the store on the server's host.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct Arguments {
  std::string id;
  bool list = false;
};

absl::StatusOr<ExitCode> Create(Session& session, Client& client, const std::string& id) {
  v1::CreateBackupRequest request;
  request.set_id(id);
  const auto backup = client.CreateBackup(request);
  if (!backup.ok()) return backup.status();
  if (session.json()) {
    session.Emit(BackupJson(*backup));
    return ExitCode::kOk;
  }
  session.Print(absl::StrCat(backup->path(), ": ", Bytes(backup->bytes()), ", ", Counted(backup->trials(), "trial"),
                             ", ", Counted(backup->incumbents(), "incumbent"), ", ",
                             Counted(backup->artifacts(), "artifact"), ", checked"));
  if (backup->missing_artifacts() > 0) {
    session.Note(absl::StrCat("The server has lost ", Counted(backup->missing_artifacts(), "artifact"),
                              " that incumbents name; tuning their problems again compiles them again."));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> List(Session& session, Client& client) {
  Table table({{"backup", kName},
               {"made"},
               {"size", kNumber},
               {"trials", kNumber},
               {"incumbents", kNumber, 1},
               {"artifacts", kNumber, 2},
               {"path", kFlexible, 3}});
  std::string directory;  // of them all
  const absl::Status status = ForEach(
      client, &Client::ListBackups, &v1::ListBackupsResponse::backups, v1::ListBackupsRequest(), kAll,
      [&](const v1::Backup& backup) {
        if (session.json()) {
          session.Emit(BackupJson(backup));
          return;
        }
        directory = backup.path().substr(0, backup.path().rfind('/'));
        table.Row({backup.name(), LocalTime(backup.create_time()), Bytes(backup.bytes()), absl::StrCat(backup.trials()),
                   absl::StrCat(backup.incumbents()), absl::StrCat(backup.artifacts()), backup.path()});
      });
  if (!status.ok()) return status;
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    session.Note("No backups. To make one: attune backup");
  } else {
    session.Print(table);
    session.Note(absl::StrCat("They are in ", directory, " on the server's host."));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Run(Session& session, const Arguments& arguments) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  return arguments.list ? List(session, **client) : Create(session, **client, arguments.id);
}

}  // namespace

Action AddBackup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::Option* id =
      app.add_option("name", arguments->id, "What to name it; default the time")->check([](const std::string& name) {
        return name.empty() ? "is empty; give a name or none" : "";
      });
  app.add_flag("--list", arguments->list, "List the backups there are")->excludes(id);
  return [arguments](Session& session) { return Run(session, *arguments); };
}

}  // namespace attune::cli
