#include "server/store/sqlite/names.h"

#include <optional>

namespace attune::store::sqlite {
namespace {

absl::StatusOr<int64_t> Intern(Connection& connection, absl::string_view select, absl::string_view insert,
                               absl::string_view text) {
  absl::StatusOr<std::optional<int64_t>> id = Statement(connection, select).Bind(text).FindInt();
  if (!id.ok()) return id.status();
  if (id->has_value()) return **id;
  if (absl::Status status = Statement(connection, insert).Bind(text).Run(); !status.ok()) return status;
  return connection.LastInsertId();
}

}  // namespace

absl::StatusOr<int64_t> InternProblem(Connection& connection, absl::string_view text) {
  return Intern(connection, "SELECT id FROM problems WHERE text = ?", "INSERT INTO problems (text) VALUES (?)", text);
}

absl::StatusOr<int64_t> InternDevice(Connection& connection, absl::string_view name) {
  return Intern(connection, "SELECT id FROM devices WHERE name = ?", "INSERT INTO devices (name) VALUES (?)", name);
}

absl::StatusOr<int64_t> InternClass(Connection& connection, absl::string_view fingerprint) {
  return Intern(connection, "SELECT id FROM device_classes WHERE fingerprint = ?",
                "INSERT INTO device_classes (fingerprint) VALUES (?)", fingerprint);
}

}  // namespace attune::store::sqlite
