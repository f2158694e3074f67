#include "server/store/sqlite/maintenance/check_store.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/store/files.h"
#include "server/store/lock_file.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/migrations.h"

namespace attune::store {
namespace {

using sqlite::Connection;
using sqlite::Statement;

absl::Status QuickCheck(Connection& connection) {
  Statement check(connection, "PRAGMA quick_check(1)");
  absl::StatusOr<bool> row = check.Step();
  if (!row.ok()) return row.status();
  if (*row && check.Text(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(connection.file(), " is damaged: ", *row ? check.Text(0) : "unknown"));
}

}  // namespace

absl::StatusOr<StoreReport> CheckStore(const std::string& directory) {
  StoreReport report;
  const absl::Span<const std::string> migrations = sqlite::Migrations();
  report.newest = static_cast<int64_t>(migrations.size());
  const std::string file = absl::StrCat(directory, "/attune.db");
  if (access(directory.c_str(), F_OK) != 0 && errno == ENOENT) return report;
  if (access(directory.c_str(), R_OK | W_OK | X_OK) != 0) return FileError(errno, "write to", directory);
  if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) return report;
  report.exists = true;

  const absl::StatusOr<LockFile> lock = LockFile::Acquire(absl::StrCat(directory, "/attune.lock"));
  if (absl::IsFailedPrecondition(lock.status())) {
    report.in_use = std::string(lock.status().message());
    return report;
  }
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<Connection>> connection = sqlite::OpenReader(file);
  if (!connection.ok()) return connection.status();
  absl::StatusOr<int64_t> version = sqlite::VersionOf(**connection, migrations);
  if (!version.ok()) return version.status();
  report.version = *version;
  if (absl::Status status = QuickCheck(**connection); !status.ok()) return status;
  if (absl::Status status = sqlite::CheckForeignKeys(**connection); !status.ok()) return status;
  if (report.version > 0) {
    absl::StatusOr<std::optional<int64_t>> trials = Statement(**connection, "SELECT count(*) FROM trials").FindInt();
    if (!trials.ok()) return trials.status();
    report.trials = trials->value_or(0);
  }
  return report;
}

}  // namespace attune::store
