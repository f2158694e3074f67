// A thin face over sqlite3: connections, statements and transactions that undo themselves, errors as absl::Status.
#ifndef ATTUNE_SERVER_STORE_SQLITE_CONNECTION_H_
#define ATTUNE_SERVER_STORE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::store::sqlite {

struct StatementDeleter {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using StatementHandle = std::unique_ptr<sqlite3_stmt, StatementDeleter>;

// One thread at a time.
class Connection {
 public:
  enum class Access { kRead, kWrite };  // kWrite creates the file when missing

  // Opens the file and sees that it really is writable, when asked for; sets no mode that is kept in the file.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& file, Access access);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Statements without parameters, separated by semicolons.
  absl::Status Execute(const std::string& sql);

  bool InTransaction() const { return sqlite3_get_autocommit(handle()) == 0; }
  int64_t LastInsertId() const { return sqlite3_last_insert_rowid(handle()); }
  int Changes() const { return sqlite3_changes(handle()); }  // rows touched by the last statement
  const std::string& file() const { return file_; }
  sqlite3* handle() const { return handle_.get(); }

  // What an sqlite3 result code means here: ResourceExhausted ("disk full"), Unavailable (I/O error, busy),
  // PermissionDenied, DataLoss, AlreadyExists (unique constraint) or Internal. The line names the file.
  absl::Status Error(int code) const;

 private:
  friend class Statement;
  struct Closer {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };

  Connection(std::string file, sqlite3* handle) : file_(std::move(file)), handle_(handle) {}

  // Prepared statements wait here between uses.
  absl::StatusOr<StatementHandle> Take(absl::string_view sql);
  void PutBack(const std::string& sql, StatementHandle statement);

  std::string file_;
  std::unique_ptr<sqlite3, Closer> handle_;
  std::map<std::string, StatementHandle, std::less<>> idle_;  // closed before the handle
};

struct Blob {
  absl::string_view bytes;
};

// One use of a statement: bind, step, read. The first error is kept and comes out of every later Step.
class Statement {
 public:
  Statement(Connection& connection, absl::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // The next parameters in order: integers, doubles, text, Blob, optionals (null).
  template <typename... Values>
  Statement& Bind(const Values&... values) {
    (BindNext(values), ...);
    return *this;
  }

  absl::StatusOr<bool> Step();  // true: a row is there to be read
  absl::Status Run();           // to the end, rows ignored
  // The first column of the first row; nothing without a row.
  absl::StatusOr<std::optional<int64_t>> FindInt();

  // Columns of the row stepped to, from 0. The views live until the next Step.
  bool IsNull(int column) const;
  int64_t Int(int column) const;
  double Real(int column) const;
  absl::string_view Text(int column) const;
  absl::string_view Bytes(int column) const;

 private:
  void BindNext(int64_t value);
  void BindNext(int value) { BindNext(int64_t{value}); }
  void BindNext(double value);
  void BindNext(absl::string_view text);
  void BindNext(Blob blob);
  void BindNext(std::nullopt_t);
  template <typename T>
  void BindNext(const std::optional<T>& value) {
    value.has_value() ? BindNext(*value) : BindNext(std::nullopt);
  }
  void Keep(int code);

  Connection& connection_;
  const std::string sql_;
  StatementHandle statement_;
  absl::Status status_;
  int bound_ = 0;
};

// Rolls back at the end of its life unless committed.
class Transaction {
 public:
  static absl::StatusOr<std::unique_ptr<Transaction>> Begin(Connection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  absl::Status Commit();

 private:
  explicit Transaction(Connection& connection) : connection_(connection) {}

  Connection& connection_;
};

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_CONNECTION_H_
