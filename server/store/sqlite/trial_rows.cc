#include "server/store/sqlite/trial_rows.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {
namespace {

absl::StatusOr<int64_t> InternFamily(Connection& connection, absl::string_view name) {
  absl::StatusOr<std::optional<int64_t>> id =
      Statement(connection, "SELECT id FROM families WHERE name = ?").Bind(name).FindInt();
  if (!id.ok()) return id.status();
  if (id->has_value()) return **id;
  absl::Status status = Statement(connection, "INSERT INTO families (name) VALUES (?)").Bind(name).Run();
  if (!status.ok()) return status;
  return connection.LastInsertId();
}

absl::StatusOr<int64_t> InternVariant(Connection& connection, const v1::Variant& variant, int64_t family_id) {
  absl::StatusOr<std::optional<int64_t>> id =
      Statement(connection, "SELECT id FROM variants WHERE text = ?").Bind(variant.text()).FindInt();
  if (!id.ok()) return id.status();
  if (id->has_value()) return **id;
  const std::string message = variant.SerializeAsString();
  absl::Status status = Statement(connection, "INSERT INTO variants (family_id, text, message) VALUES (?, ?, ?)")
                            .Bind(family_id, variant.text(), Blob{message})
                            .Run();
  if (!status.ok()) return status;
  return connection.LastInsertId();
}

absl::StatusOr<int64_t> InternDependencies(Connection& connection, const v1::Dependencies& dependencies) {
  absl::StatusOr<std::optional<int64_t>> id =
      Statement(connection,
                "SELECT id FROM dependencies"
                " WHERE toolchain = ? AND driver = ? AND device_fingerprint = ? AND source_hash = ?")
          .Bind(dependencies.toolchain(), dependencies.driver(), dependencies.device_fingerprint(),
                dependencies.source_hash())
          .FindInt();
  if (!id.ok()) return id.status();
  if (id->has_value()) return **id;
  absl::Status status =
      Statement(connection,
                "INSERT INTO dependencies (toolchain, driver, device_fingerprint, source_hash) VALUES (?, ?, ?, ?)")
          .Bind(dependencies.toolchain(), dependencies.driver(), dependencies.device_fingerprint(),
                dependencies.source_hash())
          .Run();
  if (!status.ok()) return status;
  return connection.LastInsertId();
}

absl::Status InsertMessage(Connection& connection, absl::string_view insert, int64_t trial_id,
                           const std::string& message) {
  return Statement(connection, insert).Bind(trial_id, Blob{message}).Run();
}

}  // namespace

absl::StatusOr<int64_t> InsertTrial(Connection& connection, const v1::Trial& trial) {
  absl::StatusOr<int64_t> problem = InternProblem(connection, trial.problem_text());
  if (!problem.ok()) return problem;
  absl::StatusOr<int64_t> device = InternDevice(connection, trial.device_id());
  if (!device.ok()) return device;
  std::optional<int64_t> uuid;
  if (!trial.device_uuid().empty()) {
    absl::StatusOr<int64_t> id = InternDevice(connection, trial.device_uuid());
    if (!id.ok()) return id;
    uuid = *id;
  }
  absl::StatusOr<int64_t> family = InternFamily(connection, trial.variant().family());
  if (!family.ok()) return family;
  absl::StatusOr<int64_t> variant = InternVariant(connection, trial.variant(), *family);
  if (!variant.ok()) return variant;
  absl::StatusOr<int64_t> dependencies = InternDependencies(connection, trial.dependencies());
  if (!dependencies.ok()) return dependencies;
  std::optional<int64_t> finish;
  if (trial.has_finish_time()) finish = ToNanoseconds(trial.finish_time());
  absl::Status status = Statement(connection,
                                  "INSERT INTO trials (problem_id, device_id, family_id, variant_id, policy, verdict,"
                                  " dependencies_id, rank_us, job, finish_ns, uuid_id)"
                                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                            .Bind(*problem, *device, *family, *variant, trial.policy(), trial.verdict(), *dependencies,
                                  RankOf(trial), trial.job(), finish, uuid)
                            .Run();
  if (!status.ok()) return status;
  const int64_t id = connection.LastInsertId();
  status = InsertMessage(connection, "INSERT INTO trial_bodies (trial_id, message) VALUES (?, ?)", id, BodyOf(trial));
  if (status.ok() && trial.has_recipe()) {
    status = InsertMessage(connection, "INSERT INTO trial_recipes (trial_id, message) VALUES (?, ?)", id,
                           trial.recipe().SerializeAsString());
  }
  if (!status.ok()) return status;
  return id;
}

std::string SelectTrials(absl::string_view from, absl::string_view tail) {
  // CROSS JOIN keeps SQLite to this order: what `from` chose first, then one row of each other table by its key.
  return absl::StrCat("SELECT", kTrialColumns, "FROM ", from,
                      " AS chosen CROSS JOIN trials ON trials.id = chosen.trial_id"
                      " CROSS JOIN problems ON problems.id = trials.problem_id"
                      " CROSS JOIN devices ON devices.id = trials.device_id"
                      " CROSS JOIN variants ON variants.id = trials.variant_id"
                      " CROSS JOIN dependencies ON dependencies.id = trials.dependencies_id"
                      " CROSS JOIN trial_bodies ON trial_bodies.trial_id = trials.id"
                      " LEFT JOIN devices AS uuids ON uuids.id = trials.uuid_id ",
                      tail);
}

absl::Status AddRecipe(Connection& connection, int64_t trial_id, v1::Trial& trial) {
  Statement recipe(connection, "SELECT message FROM trial_recipes WHERE trial_id = ?");
  absl::StatusOr<bool> row = recipe.Bind(trial_id).Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::OkStatus();
  return Parse(recipe.Bytes(0), "recipe", *trial.mutable_recipe());
}

}  // namespace attune::store::sqlite
