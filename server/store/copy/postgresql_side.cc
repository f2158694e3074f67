#include "server/store/copy/postgresql_side.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/base/sha256.h"
#include "server/store/blobs.h"
#include "server/store/hosts.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/errors.h"
#include "server/store/postgresql/migrations.h"
#include "server/store/postgresql/pool.h"
#include "server/store/postgresql/sql.h"
#include "server/store/postgresql/upkeep/check_database.h"

namespace attune::store::copy {
namespace {

using postgresql::Connection;
using postgresql::Parameters;
using postgresql::Rows;
using postgresql::Sql;
using postgresql::Transaction;

// While one side is worked on the other waits, and sorting a table of a million rows takes its time.
constexpr absl::Duration kLongestStatement = absl::Minutes(30);
constexpr char kWaits[] = "SET idle_in_transaction_session_timeout = 0";

absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& target) {
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      Connection::Open({.target = target, .statement = kLongestStatement});
  if (!connection.ok()) return connection;
  if (absl::Status status = (*connection)->Execute(kWaits); !status.ok()) return status;
  return connection;
}

absl::StatusOr<std::vector<std::string>> LiveHosts(Connection& connection) {
  absl::StatusOr<Rows> rows = connection.Query(
      "SELECT name FROM hosts WHERE NOT stopped AND seen > statement_timestamp() - $1 * interval '1 second'"
      " ORDER BY name",
      absl::ToInt64Seconds(kHostTtl));
  if (!rows.ok()) return rows.status();
  std::vector<std::string> names;
  while (*rows->Step()) names.emplace_back(rows->Text(0));
  return names;
}

absl::Status CheckVersion(Connection& connection, absl::string_view never) {
  const int64_t newest = static_cast<int64_t>(postgresql::Migrations().size());
  const absl::StatusOr<int64_t> version = postgresql::VersionOf(connection, newest);
  if (!version.ok()) return version.status();
  if (*version == newest) return absl::OkStatus();
  if (*version == 0) return absl::FailedPreconditionError(absl::StrCat(connection.where(), never));
  return absl::FailedPreconditionError(absl::StrCat(connection.where(), " is of schema version ", *version,
                                                    "; both stores must be of version ", newest,
                                                    ": start an attuned on it once, which brings it up to date"));
}

// In SQLite equal requests are one job, whichever hosts they are for.
absl::Status CheckIdentities(Connection& connection) {
  absl::StatusOr<Rows> rows = connection.Query(
      "SELECT one.name, other.name FROM jobs AS one JOIN jobs AS other ON other.identity = one.identity"
      " AND other.id > one.id WHERE NOT one.done AND NOT other.done LIMIT 1");
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(rows->Text(0), " and ", rows->Text(1), " of ", connection.where(),
                   " are unfinished and ask for the same on two hosts, which one SQLite store cannot have; wait for one"
                   " of them, or end it (attune cancel)"));
}

// A cursor's rows, a few at a time.
class PostgresqlRows : public RowReader {
 public:
  PostgresqlRows(Connection& connection, std::vector<Column> columns, int at_a_time)
      : connection_(connection),
        columns_(std::move(columns)),
        fetch_(absl::StrCat("FETCH ", at_a_time, " FROM copied")) {}
  ~PostgresqlRows() override {
    if (!connection_.lost()) connection_.Execute("CLOSE copied").IgnoreError();
  }
  PostgresqlRows(const PostgresqlRows&) = delete;
  PostgresqlRows& operator=(const PostgresqlRows&) = delete;

  absl::StatusOr<bool> Next(Row& row) override {
    if (!rows_.has_value() || !*rows_->Step()) {
      absl::StatusOr<Rows> fetched = connection_.Query(fetch_);
      if (!fetched.ok()) return fetched.status();
      rows_.emplace(*std::move(fetched));
      if (!*rows_->Step()) return false;
    }
    row.clear();
    for (size_t i = 0; i < columns_.size(); ++i) row.push_back(Read(columns_[i].type, static_cast<int>(i)));
    return true;
  }

 private:
  Value Read(Type type, int column) const {
    if (rows_->IsNull(column)) return {};
    if (type == Type::kReal) return rows_->Real(column);
    if (type == Type::kInt || type == Type::kBool) return rows_->Int(column);
    return std::string(rows_->Bytes(column));
  }

  Connection& connection_;
  const std::vector<Column> columns_;
  const std::string fetch_;
  std::optional<Rows> rows_;
};

// As the column's type, null or not.
void AddValue(Type type, const Value& value, Parameters& parameters) {
  const auto* number = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto* bytes = std::get_if<std::string>(&value);
  switch (type) {
    case Type::kInt:
      return parameters.Add(number == nullptr ? std::nullopt : std::optional<int64_t>(*number));
    case Type::kBool:
      return parameters.Add(number == nullptr ? std::nullopt : std::optional<bool>(*number != 0));
    case Type::kReal:
      return parameters.Add(real == nullptr ? std::nullopt : std::optional<double>(*real));
    case Type::kText:
      return parameters.Add(bytes == nullptr ? std::nullopt : std::optional<std::string>(*bytes));
    case Type::kFreeText:
    case Type::kBytes:
      return parameters.Add(bytes == nullptr ? std::nullopt
                                             : std::optional<postgresql::Blob>(postgresql::Blob{*bytes}));
  }
}

// What reading takes, of a store that is there (Side) and of one that is being made (EmptySide).
template <typename Interface>
class ReadablePostgresql : public Interface {
 public:
  explicit ReadablePostgresql(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

  Database database() const override { return Database::kPostgresql; }
  const std::string& where() const override { return connection_->where(); }

  absl::StatusOr<int64_t> Count(const Table& table, Database to) override {
    const absl::StatusOr<std::optional<int64_t>> count =
        Sql(CountRows(table, Database::kPostgresql, to)).FindInt(*connection_);
    if (!count.ok()) return count.status();
    return count->value_or(0);
  }

  absl::StatusOr<std::unique_ptr<RowReader>> Read(const Table& table, Database to) override {
    absl::Status declared = connection_->Execute(
        absl::StrCat("DECLARE copied NO SCROLL CURSOR FOR ", SelectRows(table, Database::kPostgresql, to)));
    if (!declared.ok()) return declared;
    return std::make_unique<PostgresqlRows>(*connection_, ColumnsOf(table, to), table.rows_at_a_time);
  }

  absl::StatusOr<std::vector<Content>> List(Contents contents) override {
    absl::StatusOr<Rows> rows = connection_->Query(
        contents == Contents::kCode
            ? "SELECT sha256, coalesce(used_ns, 0) FROM artifact_code FULL JOIN"
              " (SELECT DISTINCT sha256 FROM artifacts WHERE sha256 <> '') AS named USING (sha256)"
              " ORDER BY sha256 COLLATE \"C\""
            : "SELECT sha256, 0::bigint FROM blob_contents WHERE EXISTS (SELECT 1 FROM blobs WHERE blobs.sha256 ="
              " blob_contents.sha256) ORDER BY sha256 COLLATE \"C\"");
    if (!rows.ok()) return rows.status();
    std::vector<Content> list;
    while (*rows->Step()) list.push_back({std::string(rows->Text(0)), rows->Int(1)});
    return list;
  }

  absl::StatusOr<std::string> ReadContent(Contents contents, absl::string_view sha256) override {
    const bool is_code = contents == Contents::kCode;
    absl::StatusOr<Rows> rows = connection_->Query(is_code ? "SELECT bytes FROM artifact_code WHERE sha256 = $1"
                                                           : "SELECT data FROM blob_contents WHERE sha256 = $1",
                                                   sha256);
    if (!rows.ok()) return rows.status();
    const std::string name = absl::StrCat(is_code ? "artifact " : "blob ", sha256, " of ", where());
    if (!*rows->Step()) return absl::NotFoundError(absl::StrCat(name, " is gone"));
    std::string bytes(rows->Bytes(0));
    if (Sha256(bytes) == sha256) return bytes;
    return absl::DataLossError(absl::StrCat(name, " is damaged: its bytes no longer have its hash"));
  }

 protected:
  const std::unique_ptr<Connection> connection_;
};

using PostgresqlSource = ReadablePostgresql<Side>;

class PostgresqlTarget : public ReadablePostgresql<EmptySide> {
 public:
  using ReadablePostgresql::ReadablePostgresql;

  absl::Status Begin(std::vector<Table> tables) {
    tables_ = std::move(tables);
    if (absl::Status status = CheckSequences(); !status.ok()) return status;
    absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(*connection_);
    if (!transaction.ok()) return transaction.status();
    transaction_ = *std::move(transaction);
    std::vector<std::string> names = {"job_writes", "artifact_code", "blob_contents"};
    for (const Table& table : tables_) names.push_back(table.name);
    // hosts: a daemon that starts meanwhile is told that the database is locked.
    absl::Status locked = connection_->Execute(
        absl::StrCat("LOCK TABLE hosts, blob_space, ", absl::StrJoin(names, ", "), " IN SHARE ROW EXCLUSIVE MODE"));
    if (!locked.ok()) return locked;
    const absl::StatusOr<std::vector<std::string>> live = LiveHosts(*connection_);
    if (!live.ok()) return live.status();
    if (!live->empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(where(), " is in use by ", absl::StrJoin(*live, ", "), "; stop them, and copy then"));
    }
    for (const std::string& name : names) {
      const absl::StatusOr<std::optional<int64_t>> row =
          Sql(absl::StrCat("SELECT 1 FROM ", name, " LIMIT 1")).FindInt(*connection_);
      if (!row.ok()) return row.status();
      if (!row->has_value()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(where(), " has rows in ", name, ": a copy replaces nothing; name an empty database or schema"));
    }
    return absl::OkStatus();
  }

  absl::Status Write(const Table& table, const std::vector<Row>& rows) override {
    if (rows.empty()) return absl::OkStatus();
    if (absl::Status status = connection_->Execute("SAVEPOINT some_rows"); !status.ok()) return status;
    absl::Status written = Insert(table, rows, 0, rows.size());
    if (written.ok()) return connection_->Execute("RELEASE SAVEPOINT some_rows");
    if (postgresql::IsLostConnection(written)) return written;
    if (absl::Status undone = connection_->Execute("ROLLBACK TO SAVEPOINT some_rows"); !undone.ok()) return undone;
    // One by one, to name the row that cannot be stored.
    for (size_t i = 0; i < rows.size(); ++i) {
      const absl::Status one = Insert(table, rows, i, i + 1);
      if (one.ok()) continue;
      return absl::Status(one.code(), absl::StrCat(NameOfRow(table, ColumnsOf(table, Database::kPostgresql), rows[i]),
                                                   ": ", one.message()));
    }
    return written;
  }

  absl::Status WriteContent(Contents contents, const Content& content, const std::string& bytes) override {
    if (contents == Contents::kBlobs) {
      return connection_->Execute("INSERT INTO blob_contents (sha256, data) VALUES ($1, $2)", content.sha256,
                                  postgresql::Blob{bytes});
    }
    return connection_->Execute("INSERT INTO artifact_code (sha256, used_ns, bytes) VALUES ($1, $2, $3)",
                                content.sha256, content.used_ns, postgresql::Blob{bytes});
  }

  absl::Status Commit() override {
    for (const Table& table : tables_) {
      if (!table.numbered) continue;
      absl::Status set = connection_->Execute(absl::StrCat("SELECT setval(pg_get_serial_sequence('", table.name,
                                                           "', 'id'), (SELECT max(id) FROM ", table.name,
                                                           ")) WHERE EXISTS (SELECT 1 FROM ", table.name, ")"));
      if (!set.ok()) return set;
    }
    const absl::StatusOr<std::vector<int64_t>> bytes = Sql("SELECT bytes FROM blobs").Ints(*connection_);
    if (!bytes.ok()) return bytes.status();
    int64_t space = 0;
    for (const int64_t of_one : *bytes) space += BlobSpace(of_one);
    if (absl::Status status = connection_->Execute("UPDATE blob_space SET space = $1", space); !status.ok()) {
      return status;
    }
    absl::Status committed = transaction_->Commit();
    if (!postgresql::IsLostConnection(committed)) return committed;
    return absl::UnavailableError(absl::StrCat(committed.message(),
                                               "; whether the copy is there is not known: it is if attuned"
                                               " --check=store counts its trials, else copy again"));
  }

 private:
  // A role that may write rows alone cannot set what numbers them.
  absl::Status CheckSequences() {
    for (const Table& table : tables_) {
      if (!table.numbered) continue;
      absl::StatusOr<Rows> rows = connection_->Query(
          "SELECT current_user::text, has_sequence_privilege(pg_get_serial_sequence($1, 'id'), 'UPDATE')", table.name);
      if (!rows.ok()) return rows.status();
      if (*rows->Step() && rows->Bool(1)) continue;
      return absl::PermissionDeniedError(absl::StrCat(where(), ": the role ", rows->Text(0),
                                                      " may not set the sequence of ", table.name,
                                                      "; copy as the role that made the tables"));
    }
    return absl::OkStatus();
  }

  absl::Status Insert(const Table& table, const std::vector<Row>& rows, size_t begin, size_t end) {
    const std::vector<Column> columns = ColumnsOf(table, Database::kPostgresql);
    std::vector<absl::string_view> names;
    for (const Column& column : columns) names.push_back(column.name);
    std::string sql =
        absl::StrCat("INSERT INTO ", table.name, " (", absl::StrJoin(names, ", "), ") OVERRIDING SYSTEM VALUE VALUES ");
    Parameters parameters;
    for (size_t row = begin; row < end; ++row) {
      absl::StrAppend(&sql, row == begin ? "(" : ", (");
      for (size_t i = 0; i < columns.size(); ++i) {
        AddValue(columns[i].type, rows[row][i], parameters);
        absl::StrAppend(&sql, i == 0 ? "$" : ", $", parameters.size());
      }
      absl::StrAppend(&sql, ")");
    }
    return connection_->Query(sql, parameters).status();
  }

  std::vector<Table> tables_;
  std::unique_ptr<Transaction> transaction_;
};

}  // namespace

absl::StatusOr<OpenedPostgresql> OpenPostgresql(const std::string& target) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connect(target);
  if (!connection.ok()) return connection.status();
  absl::Status begun = (*connection)->Execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  if (!begun.ok()) return begun;
  absl::Status version = CheckVersion(**connection, " has no store: attune was never there");
  if (!version.ok()) return version;
  if (absl::Status status = CheckIdentities(**connection); !status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> live = LiveHosts(**connection);
  if (!live.ok()) return live.status();
  OpenedPostgresql opened;
  opened.side = std::make_unique<PostgresqlSource>(*std::move(connection));
  opened.live_hosts = *std::move(live);
  return opened;
}

absl::StatusOr<std::unique_ptr<EmptySide>> MakePostgresql(const std::string& target) {
  postgresql::Pool pool({.connection = {.target = target}});
  const int64_t newest = static_cast<int64_t>(postgresql::Migrations().size());
  const absl::StatusOr<int64_t> version =
      pool.DoAndReturn<int64_t>([newest](Connection& connection) { return postgresql::VersionOf(connection, newest); });
  if (!version.ok()) return version.status();
  if (*version == 0) {
    if (absl::Status status = postgresql::Migrate(pool, postgresql::Migrations()); !status.ok()) return status;
  }
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connect(target);
  if (!connection.ok()) return connection.status();
  if (absl::Status status = CheckVersion(**connection, " has no tables"); !status.ok()) return status;
  if (absl::Status status = postgresql::CheckRights(**connection); !status.ok()) return status;
  auto side = std::make_unique<PostgresqlTarget>(*std::move(connection));
  if (absl::Status status = side->Begin(Tables("")); !status.ok()) return status;
  return side;
}

}  // namespace attune::store::copy
