#include "server/store/sqlite/trial_rows.h"

#include <limits>
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

double Rank(const v1::Trial& trial) {
  const bool timed = trial.verdict() == v1::VERDICT_OK && trial.timing().median_us() > 0;
  return timed ? trial.timing().median_us() : std::numeric_limits<double>::infinity();
}

// What has no column of its own.
std::string Body(const v1::Trial& trial) {
  v1::Trial body = trial;
  body.clear_name();
  body.clear_problem_text();
  body.clear_device_id();
  body.clear_device_uuid();
  body.clear_variant();
  body.clear_policy();
  body.clear_verdict();
  body.clear_recipe();
  body.clear_dependencies();
  body.clear_job();
  body.clear_finish_time();
  body.clear_profile();
  body.clear_sanitizing();
  return body.SerializeAsString();
}

absl::Status InsertMessage(Connection& connection, absl::string_view insert, int64_t trial_id,
                           const std::string& message) {
  return Statement(connection, insert).Bind(trial_id, Blob{message}).Run();
}

// What has a column of its own.
void ReadColumns(const Statement& row, v1::Trial& trial) {
  trial.set_name(absl::StrCat(kTrials, row.Int(0)));
  trial.set_problem_text(std::string(row.Text(1)));
  trial.set_device_id(std::string(row.Text(2)));
  trial.set_policy(static_cast<v1::Policy>(row.Int(4)));
  trial.set_verdict(static_cast<v1::Verdict>(row.Int(5)));
  v1::Dependencies& dependencies = *trial.mutable_dependencies();
  dependencies.set_source_hash(std::string(row.Text(6)));
  dependencies.set_toolchain(std::string(row.Text(7)));
  dependencies.set_driver(std::string(row.Text(8)));
  dependencies.set_device_fingerprint(std::string(row.Text(9)));
  trial.set_job(std::string(row.Text(10)));
  trial.set_device_uuid(std::string(row.Text(14)));
  if (!row.IsNull(11)) *trial.mutable_finish_time() = FromNanoseconds(row.Int(11));
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
                                  Rank(trial), trial.job(), finish, uuid)
                            .Run();
  if (!status.ok()) return status;
  const int64_t id = connection.LastInsertId();
  status = InsertMessage(connection, "INSERT INTO trial_bodies (trial_id, message) VALUES (?, ?)", id, Body(trial));
  if (status.ok() && trial.has_recipe()) {
    status = InsertMessage(connection, "INSERT INTO trial_recipes (trial_id, message) VALUES (?, ?)", id,
                           trial.recipe().SerializeAsString());
  }
  if (!status.ok()) return status;
  return id;
}

std::string SelectTrials(absl::string_view from, absl::string_view tail) {
  // CROSS JOIN keeps SQLite to this order: what `from` chose first, then one row of each other table by its key.
  return absl::StrCat(
      "SELECT trials.id, problems.text, devices.name, variants.message, trials.policy, trials.verdict,"
      " dependencies.source_hash, dependencies.toolchain, dependencies.driver, dependencies.device_fingerprint,"
      " trials.job, trials.finish_ns, trial_bodies.message, trials.rank_us, uuids.name FROM ",
      from,
      " AS chosen CROSS JOIN trials ON trials.id = chosen.trial_id"
      " CROSS JOIN problems ON problems.id = trials.problem_id"
      " CROSS JOIN devices ON devices.id = trials.device_id"
      " CROSS JOIN variants ON variants.id = trials.variant_id"
      " CROSS JOIN dependencies ON dependencies.id = trials.dependencies_id"
      " CROSS JOIN trial_bodies ON trial_bodies.trial_id = trials.id"
      " LEFT JOIN devices AS uuids ON uuids.id = trials.uuid_id ",
      tail);
}

absl::StatusOr<v1::Trial> ReadTrial(const Statement& row) {
  v1::Trial trial;
  if (absl::Status status = Parse(row.Bytes(12), "trial", trial); !status.ok()) return status;
  if (absl::Status status = Parse(row.Bytes(3), "variant", *trial.mutable_variant()); !status.ok()) return status;
  ReadColumns(row, trial);
  return trial;
}

v1::Trial DamagedTrial(const Statement& row, const absl::Status& status) {
  v1::Trial trial;
  Parse(row.Bytes(3), "variant", *trial.mutable_variant()).IgnoreError();
  ReadColumns(row, trial);
  trial.set_verdict(v1::VERDICT_LOST);
  trial.set_detail(absl::StrCat(status.message(), "; it is tried again when it is asked for"));
  return trial;
}

int64_t ReadTrialId(const Statement& row) { return row.Int(0); }

double ReadTrialRank(const Statement& row) { return row.Real(13); }

absl::Status AddRecipe(Connection& connection, int64_t trial_id, v1::Trial& trial) {
  Statement recipe(connection, "SELECT message FROM trial_recipes WHERE trial_id = ?");
  absl::StatusOr<bool> row = recipe.Bind(trial_id).Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::OkStatus();
  return Parse(recipe.Bytes(0), "recipe", *trial.mutable_recipe());
}

}  // namespace attune::store::sqlite
