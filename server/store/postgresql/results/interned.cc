#include "server/store/postgresql/results/interned.h"

#include "absl/strings/str_cat.h"
#include "server/store/postgresql/sql.h"

namespace attune::store::postgresql {
namespace {

// Looks first: nearly always it is there, and numbers are not used up. Where another transaction makes the row at the
// same time, the insertion waits for it, and the next look sees its row.
absl::StatusOr<int64_t> Intern(Connection& connection, const Sql& select, const Sql& insert) {
  for (const Sql* sql : {&select, &insert, &select}) {
    const absl::StatusOr<std::optional<int64_t>> id = sql->FindInt(connection);
    if (!id.ok()) return id.status();
    if (id->has_value()) return **id;
  }
  return absl::InternalError("a text that is stored once is not there");
}

absl::StatusOr<int64_t> InternText(Connection& connection, absl::string_view table, absl::string_view column,
                                   absl::string_view text) {
  return Intern(
      connection, Sql(absl::StrCat("SELECT id FROM ", table, " WHERE ", column, " = ?"), text),
      Sql(absl::StrCat("INSERT INTO ", table, " (", column, ") VALUES (?) ON CONFLICT DO NOTHING RETURNING id"), text));
}

absl::StatusOr<int64_t> InternVariant(Connection& connection, const v1::Variant& variant) {
  const std::string message = variant.SerializeAsString();
  return Intern(connection, Sql("SELECT id FROM variants WHERE text = ?", variant.text()),
                Sql("INSERT INTO variants (text, message) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id",
                    variant.text(), Blob{message}));
}

absl::StatusOr<int64_t> InternDependencies(Connection& connection, const v1::Dependencies& on) {
  return Intern(connection,
                Sql("SELECT id FROM dependencies WHERE toolchain = ? AND driver = ? AND device_fingerprint = ?"
                    " AND source_hash = ?",
                    on.toolchain(), on.driver(), on.device_fingerprint(), on.source_hash()),
                Sql("INSERT INTO dependencies (toolchain, driver, device_fingerprint, source_hash)"
                    " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
                    on.toolchain(), on.driver(), on.device_fingerprint(), on.source_hash()));
}

// In one round trip, when all are there.
absl::StatusOr<std::optional<TrialIds>> FindTrialIds(Connection& connection, const v1::Trial& trial) {
  const v1::Dependencies& on = trial.dependencies();
  absl::StatusOr<Rows> rows =
      Sql("SELECT (SELECT id FROM problems WHERE text = ?), (SELECT id FROM devices WHERE name = ?),"
          " (SELECT id FROM devices WHERE name = ?), (SELECT id FROM families WHERE name = ?),"
          " (SELECT id FROM variants WHERE text = ?), (SELECT id FROM dependencies WHERE toolchain = ?"
          " AND driver = ? AND device_fingerprint = ? AND source_hash = ?)",
          trial.problem_text(), trial.device_id(), trial.device_uuid(), trial.variant().family(),
          trial.variant().text(), on.toolchain(), on.driver(), on.device_fingerprint(), on.source_hash())
          .Query(connection);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return absl::InternalError("a SELECT without a table gave no row");
  const bool has_uuid = !trial.device_uuid().empty();
  for (const int column : {0, 1, 3, 4, 5}) {
    if (rows->IsNull(column)) return std::nullopt;
  }
  if (has_uuid && rows->IsNull(2)) return std::nullopt;
  TrialIds ids = {.problem = rows->Int(0),
                  .card = {.device = rows->Int(1), .uuid = {}},
                  .family = rows->Int(3),
                  .variant = rows->Int(4),
                  .dependencies = rows->Int(5)};
  if (has_uuid) ids.card.uuid = rows->Int(2);
  return ids;
}

}  // namespace

absl::StatusOr<int64_t> InternProblem(Connection& connection, absl::string_view text) {
  return InternText(connection, "problems", "text", text);
}

absl::StatusOr<int64_t> InternDevice(Connection& connection, absl::string_view name) {
  return InternText(connection, "devices", "name", name);
}

absl::StatusOr<int64_t> InternClass(Connection& connection, absl::string_view fingerprint) {
  return InternText(connection, "device_classes", "fingerprint", fingerprint);
}

absl::StatusOr<CardIds> InternCard(Connection& connection, absl::string_view id, absl::string_view uuid) {
  CardIds card;
  const absl::StatusOr<int64_t> device = InternDevice(connection, id);
  if (!device.ok()) return device.status();
  card.device = *device;
  if (uuid.empty()) return card;
  const absl::StatusOr<int64_t> named = InternDevice(connection, uuid);
  if (!named.ok()) return named.status();
  card.uuid = *named;
  return card;
}

absl::StatusOr<TrialIds> InternTrial(Connection& connection, const v1::Trial& trial) {
  const absl::StatusOr<std::optional<TrialIds>> found = FindTrialIds(connection, trial);
  if (!found.ok()) return found.status();
  if (found->has_value()) return **found;
  const absl::StatusOr<int64_t> problem = InternProblem(connection, trial.problem_text());
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<CardIds> card = InternCard(connection, trial.device_id(), trial.device_uuid());
  if (!card.ok()) return card.status();
  const absl::StatusOr<int64_t> family = InternText(connection, "families", "name", trial.variant().family());
  if (!family.ok()) return family.status();
  const absl::StatusOr<int64_t> variant = InternVariant(connection, trial.variant());
  if (!variant.ok()) return variant.status();
  const absl::StatusOr<int64_t> dependencies = InternDependencies(connection, trial.dependencies());
  if (!dependencies.ok()) return dependencies.status();
  return TrialIds{*problem, *card, *family, *variant, *dependencies};
}

}  // namespace attune::store::postgresql
