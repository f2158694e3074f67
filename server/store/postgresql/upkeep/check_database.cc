#include "server/store/postgresql/upkeep/check_database.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/store/postgresql/migrations.h"
#include "server/store/postgresql/sql.h"

namespace attune::store::postgresql {
namespace {

// Before tables are made or changed.
absl::Status CheckMayMigrate(Connection& connection) {
  absl::StatusOr<Rows> rows = connection.Query(
      "SELECT current_user::text, current_schema()::text, has_schema_privilege(current_schema(), 'CREATE')");
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return absl::InternalError("a SELECT without a table gave no row");
  if (rows->IsNull(1)) {
    return absl::FailedPreconditionError(
        absl::StrCat(connection.where(), ": no schema of the role's search_path is there"));
  }
  if (rows->Bool(2)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(connection.where(), ": the role ", rows->Text(0),
                                                  " may not make tables in the schema ", rows->Text(1),
                                                  "; GRANT CREATE ON SCHEMA, or let another role start a daemon once"));
}

}  // namespace

absl::Status CheckRights(Connection& connection) {
  absl::StatusOr<Rows> rows = connection.Query(
      "SELECT current_user::text, string_agg(relname::text, ', ' ORDER BY relname) FROM pg_catalog.pg_class"
      " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
      " AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')"
      " AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))");
  if (!rows.ok()) return rows.status();
  if (!*rows->Step() || rows->IsNull(1)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(connection.where(), ": the role ", rows->Text(0),
                                                  " needs SELECT, INSERT, UPDATE and DELETE on ", rows->Text(1)));
}

absl::StatusOr<DatabaseReport> CheckDatabase(const ConnectionSettings& settings) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(settings);
  if (!connection.ok()) return connection.status();
  DatabaseReport report = {.where = (*connection)->where(), .newest = static_cast<int64_t>(Migrations().size())};
  const absl::StatusOr<int64_t> version = VersionOf(**connection, report.newest);
  if (!version.ok()) return version.status();
  report.version = *version;
  if (report.version < report.newest) {
    if (absl::Status status = CheckMayMigrate(**connection); !status.ok()) return status;
    return report;
  }
  if (absl::Status status = CheckRights(**connection); !status.ok()) return status;
  const absl::StatusOr<std::optional<int64_t>> trials = Sql("SELECT count(*) FROM trials").FindInt(**connection);
  if (!trials.ok()) return trials.status();
  report.trials = trials->value_or(0);
  return report;
}

}  // namespace attune::store::postgresql
