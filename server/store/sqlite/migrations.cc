#include "server/store/sqlite/migrations.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"

namespace attune::store::sqlite {
namespace {

absl::StatusOr<int64_t> Pragma(Connection& connection, absl::string_view name) {
  absl::StatusOr<std::optional<int64_t>> value = Statement(connection, absl::StrCat("PRAGMA ", name)).FindInt();
  if (!value.ok()) return value.status();
  return value->value_or(0);
}

absl::Status Apply(Connection& connection, const std::string& sql, int64_t version) {
  absl::StatusOr<std::unique_ptr<Transaction>> transaction = Transaction::Begin(connection);
  if (!transaction.ok()) return transaction.status();
  if (absl::Status status = connection.Execute(sql); !status.ok()) return status;
  if (absl::Status status = CheckForeignKeys(connection); !status.ok()) return status;
  absl::Status status =
      connection.Execute(absl::StrCat("PRAGMA application_id = ", kApplicationId, "; PRAGMA user_version = ", version));
  if (!status.ok()) return status;
  return (*transaction)->Commit();
}

}  // namespace

absl::Status CheckForeignKeys(Connection& connection) {
  Statement check(connection, "PRAGMA foreign_key_check");
  absl::StatusOr<bool> violated = check.Step();
  if (!violated.ok()) return violated.status();
  if (!*violated) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(connection.file(), ": rows of ", check.Text(0), " refer to rows of ",
                                          check.Text(2), " that do not exist"));
}

absl::StatusOr<int64_t> VersionOf(Connection& connection, absl::Span<const std::string> migrations) {
  absl::StatusOr<int64_t> application = Pragma(connection, "application_id");
  if (!application.ok()) return application.status();
  absl::StatusOr<int64_t> version = Pragma(connection, "user_version");
  if (!version.ok()) return version.status();
  absl::StatusOr<std::optional<int64_t>> tables = Statement(connection, "SELECT count(*) FROM sqlite_schema").FindInt();
  if (!tables.ok()) return tables.status();
  const bool empty = *version == 0 && tables->value_or(0) == 0;
  if (*application != kApplicationId && !(empty && *application == 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat(connection.file(), " belongs to another application (application_id ", *application, ")"));
  }
  const int64_t known = static_cast<int64_t>(migrations.size());
  if (*version < 0 || *version > known) {
    return absl::FailedPreconditionError(absl::StrCat(connection.file(), " is of schema version ", *version,
                                                      "; this program knows versions up to ", known,
                                                      ": start the newer one"));
  }
  return version;
}

absl::Status Migrate(Connection& connection, absl::Span<const std::string> migrations) {
  const absl::StatusOr<int64_t> version = VersionOf(connection, migrations);
  if (!version.ok()) return version.status();
  const int64_t known = static_cast<int64_t>(migrations.size());
  for (int64_t step = *version; step < known; ++step) {
    if (absl::Status status = Apply(connection, migrations[static_cast<size_t>(step)], step + 1); !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("migrating to schema version ", step + 1, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace attune::store::sqlite
