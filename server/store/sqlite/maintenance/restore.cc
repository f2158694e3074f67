#include "server/store/sqlite/maintenance/restore.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/store/artifact_files.h"
#include "server/store/files.h"
#include "server/store/sqlite/maintenance/backup.h"
#include "server/store/sqlite/maintenance/new_store.h"

namespace attune::store {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

absl::Status CheckBackup(const std::string& backup) {
  if (!Exists(absl::StrCat(backup, "/attune.db"))) {
    return absl::NotFoundError(absl::StrCat(backup, " is not a backup: there is no attune.db in it"));
  }
  // Of a database that somebody opened, the log is a part.
  const std::string log = absl::StrCat(backup, "/attune.db-wal");
  if (!Exists(log)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(log, " exists: this is the directory of a store that was in use, not a backup"));
}

absl::Status RestoreArtifacts(const std::string& backup, const std::string& directory,
                              const std::vector<std::string>& names, Restored& restored) {
  absl::StatusOr<std::unique_ptr<ArtifactFiles>> to = ArtifactFiles::Open(absl::StrCat(directory, "/artifacts"));
  if (!to.ok()) return to.status();
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> bytes = ReadArtifactFile(absl::StrCat(backup, "/artifacts"), name);
    if (absl::IsNotFound(bytes.status()) || absl::IsDataLoss(bytes.status())) {
      restored.left_out.emplace_back(bytes.status().message());
      continue;
    }
    if (!bytes.ok()) return bytes.status();
    if (absl::Status status = (*to)->Put(name, *bytes); !status.ok()) return status;
    ++restored.artifacts;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Restored> Restore(const std::string& backup, const std::string& directory) {
  if (absl::Status status = CheckBackup(backup); !status.ok()) return status;
  const absl::StatusOr<std::unique_ptr<sqlite::NewStore>> store =
      sqlite::NewStore::Begin(directory, "restored.db", "restore");
  if (!store.ok()) return store.status();
  const std::string& file = (*store)->file();
  if (absl::Status status = CopyFile(absl::StrCat(backup, "/attune.db"), file); !status.ok()) return status;
  const absl::StatusOr<sqlite::CopyContents> database = sqlite::CheckCopy(file);
  if (!database.ok()) return database.status();
  Restored restored;
  restored.trials = database->trials;
  restored.incumbents = database->incumbents;
  restored.jobs = database->jobs;
  if (absl::Status status = RestoreArtifacts(backup, directory, database->artifacts, restored); !status.ok()) {
    return status;
  }
  if (absl::Status status = (*store)->Finish(); !status.ok()) return status;
  return restored;
}

}  // namespace attune::store
