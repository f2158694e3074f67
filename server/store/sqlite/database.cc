#include "server/store/sqlite/database.h"

#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/store/files.h"
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

absl::Status CopyPages(Connection& source, Connection& target) {
  sqlite3_backup* backup = sqlite3_backup_init(target.handle(), "main", source.handle(), "main");
  if (backup == nullptr) return target.Error(sqlite3_errcode(target.handle()));
  sqlite3_backup_step(backup, -1);  // its error is the one that finish returns
  const int code = sqlite3_backup_finish(backup);
  return code == SQLITE_OK ? absl::OkStatus() : target.Error(code);
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

absl::Status Copy(Connection& source, const std::string& path) {
  const std::string temporary = absl::StrCat(path, ".tmp-", getpid());
  if (unlink(temporary.c_str()) != 0 && errno != ENOENT) return FileError(errno, "remove", temporary);
  absl::Cleanup remove = [&temporary] { unlink(temporary.c_str()); };
  {
    absl::StatusOr<std::unique_ptr<Connection>> target = Connection::Open(temporary, Connection::Access::kWrite);
    if (!target.ok()) return target.status();
    // No journal beside the copy: when it fails it is thrown away.
    if (absl::Status status = (*target)->Execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF"); !status.ok()) {
      return status;
    }
    if (absl::Status status = CopyPages(source, **target); !status.ok()) return status;
  }
  if (absl::Status status = Sync(temporary); !status.ok()) return status;
  if (absl::Status status = Rename(temporary, path); !status.ok()) return status;
  std::move(remove).Cancel();
  return absl::OkStatus();
}

}  // namespace attune::store::sqlite
