#include "server/store/sqlite/maintenance/write_backup.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/store/files.h"
#include "server/store/sqlite/maintenance/backup.h"

namespace attune::store::sqlite {
namespace {

namespace fs = std::filesystem;

int64_t SizeOf(const std::string& file) {
  std::error_code missing;
  const uintmax_t size = fs::file_size(file, missing);
  return missing ? 0 : static_cast<int64_t>(size);
}

// Incumbents' artifacts, each checked against its hash. One that is gone or damaged is counted as missing.
absl::Status CopyArtifacts(const ArtifactFiles& from, const std::string& directory,
                           const std::vector<std::string>& names, BackupContents& contents) {
  absl::StatusOr<std::unique_ptr<ArtifactFiles>> to = ArtifactFiles::Open(directory);
  if (!to.ok()) return to.status();
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> bytes = from.Read(name);
    if (absl::IsNotFound(bytes.status()) || absl::IsDataLoss(bytes.status())) {
      ++contents.missing_artifacts;
      continue;
    }
    if (!bytes.ok()) return bytes.status();
    if (absl::Status status = CheckSpace(directory, static_cast<int64_t>(bytes->size())); !status.ok()) return status;
    if (absl::Status status = (*to)->Put(name, *bytes); !status.ok()) return status;
    ++contents.artifacts;
    contents.bytes += static_cast<int64_t>(bytes->size());
  }
  return absl::OkStatus();
}

// Into `directory`, which is empty.
absl::StatusOr<BackupContents> Fill(const std::string& file, Readers& readers, const ArtifactFiles& artifacts,
                                    const std::string& directory) {
  const int64_t size = SizeOf(file) + SizeOf(absl::StrCat(file, "-wal"));
  if (absl::Status status = CheckSpace(directory, size); !status.ok()) return status;
  const std::string copy = absl::StrCat(directory, "/attune.db");
  if (absl::Status status = readers.With([&copy](Connection& source) { return CopyDatabase(source, copy); });
      !status.ok()) {
    return status;
  }
  const absl::StatusOr<CopyContents> database = CheckCopy(copy);
  if (!database.ok()) return database.status();
  BackupContents contents;
  contents.trials = database->trials;
  contents.incumbents = database->incumbents;
  contents.jobs = database->jobs;
  contents.bytes = SizeOf(copy);
  absl::Status status = CopyArtifacts(artifacts, absl::StrCat(directory, "/artifacts"), database->artifacts, contents);
  if (!status.ok()) return status;
  if (status = Sync(directory); !status.ok()) return status;
  return contents;
}

}  // namespace

absl::StatusOr<BackupContents> WriteBackup(const std::string& file, Readers& readers, const ArtifactFiles& artifacts,
                                           const std::string& directory) {
  if (absl::Status status = MakeNewDirectory(directory); !status.ok()) return status;
  absl::StatusOr<BackupContents> contents = Fill(file, readers, artifacts, directory);
  if (!contents.ok()) {
    std::error_code ignored;
    fs::remove_all(directory, ignored);
  }
  return contents;
}

}  // namespace attune::store::sqlite
