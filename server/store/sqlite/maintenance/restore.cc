#include "server/store/sqlite/maintenance/restore.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/store/artifact_files.h"
#include "server/store/files.h"
#include "server/store/lock_file.h"
#include "server/store/sqlite/maintenance/backup.h"

namespace attune::store {
namespace {

constexpr const char* kDatabaseFiles[] = {"attune.db", "attune.db-wal", "attune.db-shm"};

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

absl::Status CheckEmpty(const std::string& directory) {
  for (const char* name : kDatabaseFiles) {
    const std::string file = absl::StrCat(directory, "/", name);
    if (!Exists(file)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(file, " exists: a restore replaces nothing; name a directory without a store"));
  }
  return absl::OkStatus();
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
  if (absl::Status status = MakeDirectories(directory); !status.ok()) return status;
  const absl::StatusOr<LockFile> lock = LockFile::Acquire(absl::StrCat(directory, "/attune.lock"));
  if (!lock.ok()) return lock.status();
  if (absl::Status status = CheckEmpty(directory); !status.ok()) return status;

  // The database has its name last: until then there is no store.
  const std::string unfinished = absl::StrCat(directory, "/restored.db");
  const auto remove_unfinished = [&unfinished] {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink(absl::StrCat(unfinished, suffix).c_str());
  };
  remove_unfinished();  // what a crash left
  absl::Cleanup remove = remove_unfinished;
  if (absl::Status status = CopyFile(absl::StrCat(backup, "/attune.db"), unfinished); !status.ok()) return status;
  const absl::StatusOr<sqlite::CopyContents> database = sqlite::CheckCopy(unfinished);
  if (!database.ok()) return database.status();
  Restored restored;
  restored.trials = database->trials;
  restored.incumbents = database->incumbents;
  restored.jobs = database->jobs;
  if (absl::Status status = RestoreArtifacts(backup, directory, database->artifacts, restored); !status.ok()) {
    return status;
  }
  if (absl::Status status = Rename(unfinished, absl::StrCat(directory, "/attune.db")); !status.ok()) return status;
  std::move(remove).Cancel();
  return restored;
}

}  // namespace attune::store
