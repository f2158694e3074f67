#include "server/store/sqlite/maintenance/backup.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/store/files.h"
#include "server/store/sqlite/migrations.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {
namespace {

absl::Status CopyPages(Connection& source, Connection& target) {
  sqlite3_backup* backup = sqlite3_backup_init(target.handle(), "main", source.handle(), "main");
  if (backup == nullptr) return target.Error(sqlite3_errcode(target.handle()));
  sqlite3_backup_step(backup, -1);  // its error is the one that finish returns
  const int code = sqlite3_backup_finish(backup);
  return code == SQLITE_OK ? absl::OkStatus() : target.Error(code);
}

absl::Status IntegrityCheck(Connection& connection) {
  Statement check(connection, "PRAGMA integrity_check(1)");
  absl::StatusOr<bool> row = check.Step();
  if (!row.ok()) return row.status();
  if (*row && check.Text(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(connection.file(), " is damaged: ", *row ? check.Text(0) : "unknown"));
}

// Out of WAL mode the copy is one file, and a look at it makes no other.
absl::Status EndLog(Connection& copy) {
  Statement mode(copy, "PRAGMA journal_mode = DELETE");
  absl::StatusOr<bool> row = mode.Step();
  if (!row.ok()) return row.status();
  if (*row && mode.Text(0) == "delete") return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot end the log of ", copy.file()));
}

// SQLite says nothing of a log that it could not remove, and a directory with one is not taken for a backup. What was
// in it is in the database.
absl::Status RemoveEndedLog(const std::string& file) {
  for (const char* part : {"-wal", "-shm"}) {
    const std::string left = absl::StrCat(file, part);
    if (unlink(left.c_str()) != 0 && errno != ENOENT) return FileError(errno, "remove", left);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Count(Connection& connection, absl::string_view of) {
  absl::StatusOr<std::optional<int64_t>> count =
      Statement(connection, absl::StrCat("SELECT count(*) FROM ", of)).FindInt();
  if (!count.ok()) return count.status();
  return count->value_or(0);
}

absl::StatusOr<CopyContents> ContentsOf(Connection& connection) {
  CopyContents contents;
  const std::pair<absl::string_view, int64_t*> counts[] = {
      {"trials", &contents.trials}, {"incumbents WHERE served = 1", &contents.incumbents}, {"jobs", &contents.jobs}};
  for (const auto& [of, to] : counts) {
    absl::StatusOr<int64_t> count = Count(connection, of);
    if (!count.ok()) return count.status();
    *to = *count;
  }
  absl::StatusOr<std::vector<std::string>> artifacts = ArtifactsOfIncumbents(connection);
  if (!artifacts.ok()) return artifacts.status();
  contents.artifacts = *std::move(artifacts);
  return contents;
}

}  // namespace

namespace {

// Of each row of `select`, an id and a message, what `add` takes of it; damaged ones are left out.
template <typename Message, typename Add>
absl::Status ForEachMessage(Statement& select, absl::string_view column, absl::string_view table, const Add& add) {
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    Message message;
    const absl::Status status = Parse(select.Bytes(1), column, message);
    if (SkipDamaged(status, table, select.Int(0))) continue;
    if (!status.ok()) return status;
    add(message);
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ArtifactsOfIncumbents(Connection& connection) {
  std::set<std::string> names;
  const auto add = [&names](const v1::Trial& trial) {
    if (!trial.artifact_sha256().empty()) names.insert(trial.artifact_sha256());
  };
  Statement trials(connection,
                   "SELECT trial_id, message FROM trial_bodies WHERE trial_id IN (SELECT trial_id FROM incumbents)");
  absl::Status status = ForEachMessage<v1::Trial>(trials, "trial", "trials", add);
  if (!status.ok()) return status;
  Statement beside(connection, "SELECT id, ties FROM incumbents WHERE length(ties) > 0");
  status = ForEachMessage<v1::Incumbent>(beside, "ties", "incumbents", [&](const v1::Incumbent& incumbent) {
    for (const v1::Alternative& one : incumbent.alternatives()) add(one.trial());
  });
  if (!status.ok()) return status;
  return std::vector<std::string>(names.begin(), names.end());
}

absl::Status WriteUnsynced(Connection& copy) {
  return copy.Execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
}

absl::Status CopyDatabase(Connection& source, const std::string& file) {
  absl::StatusOr<std::unique_ptr<Connection>> target = Connection::Open(file, Connection::Access::kWrite);
  if (!target.ok()) return target.status();
  if (absl::Status status = WriteUnsynced(**target); !status.ok()) return status;
  return CopyPages(source, **target);
}

absl::StatusOr<CopyContents> CheckCopy(const std::string& file) {
  absl::StatusOr<CopyContents> contents;
  {
    absl::StatusOr<std::unique_ptr<Connection>> copy = Connection::Open(file, Connection::Access::kWrite);
    if (!copy.ok()) return copy.status();
    const absl::StatusOr<int64_t> version = VersionOf(**copy, Migrations());
    if (!version.ok()) return version.status();
    if (*version == 0) return absl::DataLossError(absl::StrCat(file, " is empty"));
    // The copy is in WAL mode, as its source is.
    if (absl::Status status = EndLog(**copy); !status.ok()) return status;
    if (absl::Status status = IntegrityCheck(**copy); !status.ok()) return status;
    if (absl::Status status = CheckForeignKeys(**copy); !status.ok()) return status;
    contents = ContentsOf(**copy);
  }
  if (absl::Status status = RemoveEndedLog(file); !status.ok()) return status;
  if (absl::Status status = Sync(file); !status.ok()) return status;
  return contents;
}

}  // namespace attune::store::sqlite
