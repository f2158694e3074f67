#include "server/store/sqlite/database.h"

#include "absl/strings/str_cat.h"
#include "server/store/sqlite/job_problems.h"
#include "server/store/sqlite/migrations.h"

namespace attune::store::sqlite {
namespace {

// Page caches are bounded (negative: KiB); the log goes back to this size after a burst.
constexpr char kWriterModes[] =
    "PRAGMA synchronous = FULL;"
    "PRAGMA foreign_keys = ON;"
    "PRAGMA wal_autocheckpoint = 1000;"
    "PRAGMA journal_size_limit = 16777216;"
    "PRAGMA cache_size = -4096;"
    "PRAGMA temp_store = MEMORY";
constexpr char kReaderModes[] =
    "PRAGMA query_only = ON;"
    "PRAGMA wal_autocheckpoint = 0;"
    "PRAGMA cache_size = -2048;"
    "PRAGMA temp_store = MEMORY";

absl::Status UseWriteAheadLog(Connection& connection) {
  Statement mode(connection, "PRAGMA journal_mode = WAL");
  absl::StatusOr<bool> row = mode.Step();
  if (!row.ok()) return row.status();
  if (mode.Text(0) == "wal") return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(connection.file(), " is on a file system without shared memory (",
                                                    "journal mode stays '", mode.Text(0), "'); use a local one"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> OpenWriter(const std::string& file) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(file, Connection::Access::kWrite);
  if (!connection.ok()) return connection;
  // First see whose file it is, then change it.
  if (absl::Status status = Migrate(**connection, Migrations()); !status.ok()) return status;
  if (absl::Status status = UseWriteAheadLog(**connection); !status.ok()) return status;
  if (absl::Status status = (*connection)->Execute(kWriterModes); !status.ok()) return status;
  if (absl::Status status = NameProblemsOfJobs(**connection); !status.ok()) return status;
  return connection;
}

absl::StatusOr<std::unique_ptr<Connection>> OpenReader(const std::string& file) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(file, Connection::Access::kRead);
  if (!connection.ok()) return connection;
  sqlite3_db_config((*connection)->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (absl::Status status = (*connection)->Execute(kReaderModes); !status.ok()) return status;
  return connection;
}

}  // namespace attune::store::sqlite
