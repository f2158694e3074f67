#include "server/store/copy/sqlite_side.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/store/artifact_files.h"
#include "server/store/lock_file.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/maintenance/backup.h"
#include "server/store/sqlite/maintenance/new_store.h"
#include "server/store/sqlite/migrations.h"

namespace attune::store::copy {
namespace {

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

class SqliteRows : public RowReader {
 public:
  SqliteRows(sqlite::Connection& connection, std::vector<Column> columns, const std::string& sql)
      : columns_(std::move(columns)), select_(connection, sql) {}

  absl::StatusOr<bool> Next(Row& row) override {
    absl::StatusOr<bool> found = select_.Step();
    if (!found.ok() || !*found) return found;
    row.clear();
    for (size_t i = 0; i < columns_.size(); ++i) row.push_back(Read(columns_[i].type, static_cast<int>(i)));
    return true;
  }

 private:
  Value Read(Type type, int column) const {
    if (select_.IsNull(column)) return {};
    if (type == Type::kReal) return select_.Real(column);
    if (type == Type::kBytes) return std::string(select_.Bytes(column));
    if (type == Type::kText || type == Type::kFreeText) return std::string(select_.Text(column));
    return select_.Int(column);
  }

  const std::vector<Column> columns_;
  sqlite::Statement select_;
};

void Bind(const Column& column, const Value& value, sqlite::Statement& statement) {
  if (std::holds_alternative<std::monostate>(value)) {
    statement.Bind(std::nullopt);
  } else if (const auto* number = std::get_if<int64_t>(&value)) {
    statement.Bind(*number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    statement.Bind(*real);
  } else if (column.type == Type::kBytes) {
    statement.Bind(sqlite::Blob{std::get<std::string>(value)});
  } else {
    statement.Bind(absl::string_view(std::get<std::string>(value)));
  }
}

// What reading takes, of a store that is there (Side) and of one that is being made (EmptySide).
template <typename Interface>
class ReadableSqlite : public Interface {
 public:
  ReadableSqlite(std::string directory, std::unique_ptr<sqlite::Connection> connection)
      : directory_(std::move(directory)), connection_(std::move(connection)) {}

  Database database() const override { return Database::kSqlite; }
  const std::string& where() const override { return directory_; }

  absl::StatusOr<int64_t> Count(const Table& table, Database to) override {
    const absl::StatusOr<std::optional<int64_t>> count =
        sqlite::Statement(*connection_, CountRows(table, Database::kSqlite, to)).FindInt();
    if (!count.ok()) return count.status();
    return count->value_or(0);
  }

  absl::StatusOr<std::unique_ptr<RowReader>> Read(const Table& table, Database to) override {
    return std::make_unique<SqliteRows>(*connection_, ColumnsOf(table, to), SelectRows(table, Database::kSqlite, to));
  }

  absl::StatusOr<std::vector<Content>> List(Contents contents) override {
    std::map<std::string, Content> found;
    sqlite::Statement select(*connection_, contents == Contents::kCode
                                               ? "SELECT DISTINCT sha256 FROM artifacts WHERE sha256 <> ''"
                                               : "SELECT DISTINCT sha256 FROM blobs");
    for (;;) {
      const absl::StatusOr<bool> row = select.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      const std::string sha256(select.Text(0));
      found[sha256] = {.sha256 = sha256};
    }
    if (contents == Contents::kCode && IsThere(FolderOf(contents))) {
      const absl::StatusOr<std::vector<ArtifactFile>> files = ListArtifactFiles(FolderOf(contents));
      if (!files.ok()) return files.status();
      for (const ArtifactFile& file : *files) found[file.sha256] = {file.sha256, absl::ToUnixNanos(file.used)};
    }
    std::vector<Content> list;
    for (auto& [sha256, content] : found) list.push_back(std::move(content));
    return list;
  }

  absl::StatusOr<std::string> ReadContent(Contents contents, absl::string_view sha256) override {
    return ReadArtifactFile(FolderOf(contents), sha256);
  }

 protected:
  std::string FolderOf(Contents contents) const {
    return absl::StrCat(directory_, contents == Contents::kCode ? "/artifacts" : "/blobs");
  }

  const std::string directory_;
  std::unique_ptr<sqlite::Connection> connection_;
};

class SqliteSource : public ReadableSqlite<Side> {
 public:
  SqliteSource(LockFile lock, std::string directory, std::unique_ptr<sqlite::Connection> connection)
      : ReadableSqlite(std::move(directory), std::move(connection)), lock_(std::move(lock)) {}

 private:
  const LockFile lock_;
};

class SqliteTarget : public ReadableSqlite<EmptySide> {
 public:
  SqliteTarget(std::string directory, std::unique_ptr<sqlite::NewStore> store,
               std::unique_ptr<sqlite::Connection> connection)
      : ReadableSqlite(std::move(directory), std::move(connection)), store_(std::move(store)) {}

  absl::Status Begin() {
    absl::Status status = sqlite::WriteUnsynced(*connection_);
    if (!status.ok()) return status;
    if (status = sqlite::Migrate(*connection_, sqlite::Migrations()); !status.ok()) return status;
    if (status = connection_->Execute("BEGIN"); !status.ok()) return status;
    for (const Contents contents : {Contents::kCode, Contents::kBlobs}) {
      absl::StatusOr<std::unique_ptr<ArtifactFiles>> files = ArtifactFiles::Open(FolderOf(contents));
      if (!files.ok()) return files.status();
      (contents == Contents::kCode ? code_ : blobs_) = *std::move(files);
    }
    return absl::OkStatus();
  }

  absl::Status Write(const Table& table, const std::vector<Row>& rows) override {
    const std::vector<Column> columns = ColumnsOf(table, Database::kSqlite);
    std::vector<absl::string_view> names;
    for (const Column& column : columns) names.push_back(column.name);
    const std::string sql = absl::StrCat("INSERT INTO ", table.name, " (", absl::StrJoin(names, ", "), ") VALUES (",
                                         absl::StrJoin(std::vector<absl::string_view>(columns.size(), "?"), ", "), ")");
    for (const Row& row : rows) {
      sqlite::Statement insert(*connection_, sql);
      for (size_t i = 0; i < columns.size(); ++i) Bind(columns[i], row[i], insert);
      const absl::Status status = insert.Run();
      if (status.ok()) continue;
      return absl::Status(status.code(), absl::StrCat(NameOfRow(table, columns, row), ": ", status.message()));
    }
    return absl::OkStatus();
  }

  absl::Status WriteContent(Contents contents, const Content& content, const std::string& bytes) override {
    ArtifactFiles& files = contents == Contents::kCode ? *code_ : *blobs_;
    absl::Status status = files.Put(content.sha256, bytes);
    if (!status.ok() || contents == Contents::kBlobs) return status;
    return files.SetUsed(content.sha256, absl::FromUnixNanos(content.used_ns));
  }

  absl::Status Commit() override {
    if (absl::Status status = connection_->Execute("COMMIT"); !status.ok()) return status;
    connection_.reset();
    if (absl::Status status = sqlite::CheckCopy(store_->file()).status(); !status.ok()) return status;
    return store_->Finish();
  }

 private:
  const std::unique_ptr<sqlite::NewStore> store_;
  std::unique_ptr<ArtifactFiles> code_;
  std::unique_ptr<ArtifactFiles> blobs_;
};

absl::Status CheckSourceVersion(sqlite::Connection& connection, const std::string& directory) {
  const absl::Span<const std::string> migrations = sqlite::Migrations();
  const absl::StatusOr<int64_t> version = sqlite::VersionOf(connection, migrations);
  if (!version.ok()) return version.status();
  if (*version == static_cast<int64_t>(migrations.size())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(connection.file(), " is of schema version ", *version, "; both stores must be of version ",
                   migrations.size(), ": start attuned --data_dir=", directory, " once, which brings it up to date"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Side>> OpenSqlite(const std::string& directory) {
  const std::string file = absl::StrCat(directory, "/attune.db");
  if (!IsThere(file)) {
    return absl::NotFoundError(absl::StrCat(directory, " has no store: there is no attune.db in it"));
  }
  absl::StatusOr<LockFile> lock = LockFile::Acquire(absl::StrCat(directory, "/attune.lock"));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(absl::StrCat(lock.status().message(), "; stop it, and copy then"));
  }
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::unique_ptr<sqlite::Connection>> connection = sqlite::OpenReader(file);
  if (!connection.ok()) return connection.status();
  if (absl::Status status = CheckSourceVersion(**connection, directory); !status.ok()) return status;
  if (absl::Status status = (*connection)->Execute("BEGIN"); !status.ok()) return status;
  return std::make_unique<SqliteSource>(*std::move(lock), directory, *std::move(connection));
}

absl::StatusOr<std::unique_ptr<EmptySide>> MakeSqlite(const std::string& directory) {
  absl::StatusOr<std::unique_ptr<sqlite::NewStore>> store = sqlite::NewStore::Begin(directory, "copied.db", "copy");
  if (!store.ok()) return store.status();
  absl::StatusOr<std::unique_ptr<sqlite::Connection>> connection =
      sqlite::Connection::Open((*store)->file(), sqlite::Connection::Access::kWrite);
  if (!connection.ok()) return connection.status();
  auto side = std::make_unique<SqliteTarget>(directory, *std::move(store), *std::move(connection));
  if (absl::Status status = side->Begin(); !status.ok()) return status;
  return side;
}

}  // namespace attune::store::copy
