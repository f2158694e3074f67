#include "server/store/sqlite/connection.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/files.h"

namespace attune::store::sqlite {
namespace {

// The statements in use are few; listings with many different filters must not pile up.
constexpr size_t kIdleStatements = 64;
constexpr int kBusyMilliseconds = 5000;

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& file, Access access) {
  const int flags = SQLITE_OPEN_NOMUTEX |
                    (access == Access::kWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Connection> connection(new Connection(file, handle));  // the constructor is private
  if (handle == nullptr) return absl::ResourceExhaustedError(absl::StrCat("out of memory opening ", file));
  if (code != SQLITE_OK) return connection->Error(code);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  if (absl::Status status = connection->Execute("PRAGMA trusted_schema = OFF"); !status.ok()) return status;
  // SQLite falls back to reading when it may not write.
  if (access == Access::kWrite && sqlite3_db_readonly(handle, "main") != 0) return connection->Error(SQLITE_READONLY);
  return connection;
}

absl::Status Connection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::Status Connection::Error(int code) const {
  const bool current = (sqlite3_errcode(handle()) & 0xff) == (code & 0xff);
  const absl::string_view reason = current ? sqlite3_errmsg(handle()) : sqlite3_errstr(code);
  const int system = sqlite3_system_errno(handle());
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat("disk full: cannot write ", file_));
    case SQLITE_IOERR:
      if (system == ENOSPC || system == EDQUOT) {
        return absl::ResourceExhaustedError(absl::StrCat("disk full: cannot write ", file_));
      }
      return absl::UnavailableError(absl::StrCat("cannot read or write ", file_, ": ", reason, " (SQLite code ", code,
                                                 ", errno ", system, "); is the disk full or failing?"));
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(absl::StrCat("out of memory using ", file_));
    case SQLITE_READONLY:
      return absl::PermissionDeniedError(absl::StrCat(file_, " cannot be written: ", reason));
    case SQLITE_CANTOPEN:
      // It, its log or its directory. After a failure to open a file for writing SQLite tries to open it for reading:
      // ENOENT is of that, and says nothing of why.
      if (system != 0 && system != ENOENT) return FileError(system, "open", file_);
      return absl::UnavailableError(absl::StrCat(file_, " cannot be opened: ", reason));
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(absl::StrCat(file_, " cannot be opened: ", reason));
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(file_, " is damaged or not a database: ", reason));
    case SQLITE_CORRUPT:  // also when the disk cannot read a page
      return absl::DataLossError(absl::StrCat(file_, " is damaged or cannot be read from the disk: ", reason));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(file_, " is locked by another process: ", reason));
    default:
      break;
  }
  if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY) {
    return absl::AlreadyExistsError(absl::StrCat(file_, ": ", reason));
  }
  return absl::InternalError(absl::StrCat(file_, ": ", reason, " (SQLite code ", code, ")"));
}

absl::StatusOr<StatementHandle> Connection::Take(absl::string_view sql) {
  if (auto idle = idle_.find(sql); idle != idle_.end()) {
    StatementHandle statement = std::move(idle->second);
    idle_.erase(idle);
    return statement;
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return Error(code);
  return StatementHandle(statement);
}

void Connection::PutBack(const std::string& sql, StatementHandle statement) {
  sqlite3_reset(statement.get());
  sqlite3_clear_bindings(statement.get());
  if (idle_.size() >= kIdleStatements) idle_.clear();
  idle_.insert_or_assign(sql, std::move(statement));
}

Statement::Statement(Connection& connection, absl::string_view sql) : connection_(connection), sql_(sql) {
  absl::StatusOr<StatementHandle> statement = connection.Take(sql);
  if (statement.ok()) {
    statement_ = *std::move(statement);
  } else {
    status_ = statement.status();
  }
}

Statement::~Statement() {
  if (statement_ != nullptr) connection_.PutBack(sql_, std::move(statement_));
}

void Statement::Keep(int code) {
  if (status_.ok() && code != SQLITE_OK) status_ = connection_.Error(code);
}

void Statement::BindNext(int64_t value) { Keep(sqlite3_bind_int64(statement_.get(), ++bound_, value)); }

void Statement::BindNext(double value) { Keep(sqlite3_bind_double(statement_.get(), ++bound_, value)); }

void Statement::BindNext(absl::string_view text) {
  // A null pointer would bind null; empty text is text.
  Keep(sqlite3_bind_text64(statement_.get(), ++bound_, text.data() == nullptr ? "" : text.data(), text.size(),
                           SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::BindNext(Blob blob) {
  Keep(sqlite3_bind_blob64(statement_.get(), ++bound_, blob.bytes.empty() ? "" : blob.bytes.data(), blob.bytes.size(),
                           SQLITE_TRANSIENT));
}

void Statement::BindNext(std::nullopt_t) { Keep(sqlite3_bind_null(statement_.get(), ++bound_)); }

absl::StatusOr<bool> Statement::Step() {
  if (!status_.ok()) return status_;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  status_ = connection_.Error(code);
  return status_;
}

absl::Status Statement::Run() {
  for (;;) {
    absl::StatusOr<bool> row = Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
  }
}

absl::StatusOr<std::optional<int64_t>> Statement::FindInt() {
  absl::StatusOr<bool> row = Step();
  if (!row.ok()) return row.status();
  return *row ? std::optional<int64_t>(Int(0)) : std::nullopt;
}

bool Statement::IsNull(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::Real(int column) const { return sqlite3_column_double(statement_.get(), column); }

absl::string_view Statement::Text(int column) const {
  const void* text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  return {static_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

absl::string_view Statement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

absl::StatusOr<std::unique_ptr<Transaction>> Transaction::Begin(Connection& connection) {
  if (absl::Status status = connection.Execute("BEGIN IMMEDIATE"); !status.ok()) return status;
  return std::unique_ptr<Transaction>(new Transaction(connection));  // the constructor is private
}

Transaction::~Transaction() {
  // Some errors (disk full, I/O) have rolled back by themselves. A rollback cannot fail in a way that matters.
  if (connection_.InTransaction()) connection_.Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() { return connection_.Execute("COMMIT"); }

}  // namespace attune::store::sqlite
