#include "server/store/postgresql/results/known_trials.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/postgresql/results/trials.h"
#include "server/store/postgresql/sql.h"
#include "server/store/rows/trial_columns.h"

namespace attune::store::postgresql {
namespace {

// A WITH clause without its last condition: `same` has the trials of one problem and policy, of all cards of the class;
// `own` says whether they are the card's.
void AddSame(absl::string_view problem_text, const Instance& device, v1::Policy policy, Sql& sql) {
  sql.Add(absl::StrCat("WITH same AS (SELECT id, variant_id, dependencies_id, verdict, retry, rank_us,"
                       " CASE WHEN uuid_id IS NULL THEN device_id = (SELECT id FROM devices WHERE name = ?)"
                       " ELSE uuid_id = (SELECT id FROM devices WHERE name = ?) END AS own FROM trials"
                       " WHERE problem_id = (SELECT id FROM problems WHERE text = ?) AND policy = ? AND verdict <> ",
                       v1::VERDICT_LOST, " AND "),
          device.id, device.uuid, problem_text, policy);
}

void AddUnder(const v1::Dependencies& dependencies, Sql& sql) {
  sql.Add(
      "dependencies_id IN (SELECT id FROM dependencies WHERE toolchain = ? AND driver = ?"
      " AND device_fingerprint = ?)) ",
      dependencies.toolchain(), dependencies.driver(), dependencies.device_fingerprint());
}

// Damaged rows are logged and left out.
absl::StatusOr<std::vector<v1::Trial>> ReadAll(Connection& connection, const Sql& sql) {
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  std::vector<v1::Trial> trials;
  while (*rows->Step()) {
    absl::StatusOr<v1::Trial> trial = ReadTrial(*rows);
    if (trial.ok()) {
      trials.push_back(*std::move(trial));
    } else if (!SkipDamaged(trial.status(), "trials", ReadTrialId(*rows))) {
      return trial.status();
    }
  }
  return trials;
}

}  // namespace

absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const TrialKey& key) {
  const v1::Dependencies& on = key.dependencies;
  Sql sql(absl::StrCat(SelectWholeTrials(), "("));
  AddSame(key.problem_text, key.device, key.policy, sql);
  sql.Add(
      "variant_id = (SELECT id FROM variants WHERE text = ?)"
      " AND dependencies_id = (SELECT id FROM dependencies WHERE toolchain = ? AND driver = ?"
      " AND device_fingerprint = ? AND source_hash = ?)) ",
      key.variant_text, on.toolchain(), on.driver(), on.device_fingerprint(), on.source_hash());
  sql.Add(
      absl::StrCat("SELECT id AS trial_id FROM same WHERE NOT retry AND id = coalesce("
                   "(SELECT id FROM same WHERE id = (SELECT max(id) FROM same) AND verdict IN ",
                   VerdictsOfTheClass(), "), (SELECT max(id) FROM same WHERE own)))", kTrialsOfChosen));
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return NothingKnown(key);
  return ReadWholeTrial(*rows);
}

absl::StatusOr<std::vector<v1::Trial>> KnownTrials(Connection& connection, absl::string_view problem_text,
                                                   const Instance& device, v1::Policy policy,
                                                   const v1::Dependencies& dependencies) {
  Sql sql(absl::StrCat(SelectTrials(), "("));
  AddSame(problem_text, device, policy, sql);
  AddUnder(dependencies, sql);
  sql.Add(
      absl::StrCat("SELECT known.id AS trial_id FROM (SELECT max(id) AS newest,"
                   " max(CASE WHEN own THEN id END) AS own FROM same GROUP BY variant_id, dependencies_id)"
                   " AS variants_known JOIN trials AS newest ON newest.id = variants_known.newest"
                   " JOIN trials AS known ON known.id = CASE WHEN newest.verdict IN ",
                   VerdictsOfTheClass(), " THEN newest.id ELSE variants_known.own END WHERE NOT known.retry)",
                   kTrialsOfChosen, "ORDER BY chosen.trial_id"));
  return ReadAll(connection, sql);
}

absl::StatusOr<std::vector<v1::Trial>> PriorTrials(Connection& connection, absl::string_view problem_text,
                                                   const Instance& device, v1::Policy policy,
                                                   const v1::Dependencies& dependencies, int most) {
  Sql sql(absl::StrCat(SelectTrials(), "("));
  AddSame(problem_text, device, policy, sql);
  AddUnder(dependencies, sql);
  // rank_us is infinite unless the trial is OK and timed.
  sql.Add(
      "SELECT newest.id AS trial_id, newest.rank_us AS rank_us FROM (SELECT max(id) AS id FROM same"
      " WHERE own IS NOT TRUE GROUP BY variant_id, dependencies_id) AS others"
      " JOIN trials AS newest ON newest.id = others.id WHERE NOT newest.retry AND newest.rank_us < 'Infinity'"
      " ORDER BY newest.rank_us, newest.id LIMIT ?)",
      most);
  sql.Add(absl::StrCat(kTrialsOfChosen, "ORDER BY chosen.rank_us, chosen.trial_id"));
  return ReadAll(connection, sql);
}

}  // namespace attune::store::postgresql
