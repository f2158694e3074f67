#include "server/store/sqlite/known_trials.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/sqlite/names.h"
#include "server/store/sqlite/trial_rows.h"
#include "server/store/sqlite/trials.h"

namespace attune::store::sqlite {
namespace {

// A WITH clause: `same` has the trials of one problem and policy, of all cards of the class, of which `where` is true
// too; `own` says whether they are the card's. Its parameters: ?1 problem, ?2 policy, ?3 the card's id, ?4 its uuid;
// `where` has those from ?5.
std::string WithSame(absl::string_view where) {
  return absl::StrCat(
      "WITH same AS (SELECT id, variant_id, dependencies_id, verdict, retry, rank_us, CASE WHEN uuid_id IS NULL"
      " THEN device_id = (SELECT id FROM devices WHERE name = ?3)"
      " ELSE uuid_id = (SELECT id FROM devices WHERE name = ?4) END AS own FROM trials"
      " WHERE problem_id = (SELECT id FROM problems WHERE text = ?1) AND policy = ?2 AND verdict <> ",
      v1::VERDICT_LOST, " AND ", where, ") ");
}

constexpr absl::string_view kUnderDependencies =
    "dependencies_id IN (SELECT id FROM dependencies WHERE toolchain = ?5 AND driver = ?6 AND device_fingerprint = ?7)";

// `select` is a SelectTrials with its parameters bound. Damaged rows are logged and left out.
absl::StatusOr<std::vector<v1::Trial>> ReadAll(Statement& select) {
  std::vector<v1::Trial> trials;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return trials;
    absl::StatusOr<v1::Trial> trial = ReadTrial(select);
    if (trial.ok()) {
      trials.push_back(*std::move(trial));
    } else if (!SkipDamaged(trial.status(), "trials", ReadTrialId(select))) {
      return trial.status();
    }
  }
}

}  // namespace

absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const TrialKey& key) {
  Statement select(connection,
                   absl::StrCat(WithSame("variant_id = (SELECT id FROM variants WHERE text = ?5)"
                                         " AND dependencies_id = (SELECT id FROM dependencies WHERE toolchain = ?6"
                                         " AND driver = ?7 AND device_fingerprint = ?8 AND source_hash = ?9)"),
                                "SELECT id FROM same WHERE retry = 0 AND id = coalesce("
                                "(SELECT id FROM same WHERE id = (SELECT max(id) FROM same) AND verdict IN ",
                                VerdictsOfTheClass(), "), (SELECT max(id) FROM same WHERE own))"));
  const v1::Dependencies& dependencies = key.dependencies;
  const absl::StatusOr<std::optional<int64_t>> id =
      select
          .Bind(key.problem_text, key.policy, key.device.id, key.device.uuid, key.variant_text,
                dependencies.toolchain(), dependencies.driver(), dependencies.device_fingerprint(),
                dependencies.source_hash())
          .FindInt();
  if (!id.ok()) return id.status();
  if (id->has_value()) return GetTrial(connection, absl::StrCat(kTrials, **id));
  return NothingKnown(key);
}

absl::StatusOr<std::vector<v1::Trial>> KnownTrials(Connection& connection, absl::string_view problem_text,
                                                   const Instance& device, v1::Policy policy,
                                                   const v1::Dependencies& dependencies) {
  Statement select(
      connection,
      SelectTrials(
          absl::StrCat("(", WithSame(kUnderDependencies),
                       "SELECT known.id AS trial_id FROM (SELECT max(id) AS newest,"
                       " max(CASE WHEN own THEN id END) AS own FROM same GROUP BY variant_id, dependencies_id)"
                       " AS variants_known CROSS JOIN trials AS newest ON newest.id = variants_known.newest"
                       " CROSS JOIN trials AS known ON known.id = CASE WHEN newest.verdict IN ",
                       VerdictsOfTheClass(), " THEN newest.id ELSE variants_known.own END WHERE known.retry = 0)"),
          "ORDER BY chosen.trial_id"));
  select.Bind(problem_text, policy, device.id, device.uuid, dependencies.toolchain(), dependencies.driver(),
              dependencies.device_fingerprint());
  return ReadAll(select);
}

absl::StatusOr<std::vector<v1::Trial>> PriorTrials(Connection& connection, absl::string_view problem_text,
                                                   const Instance& device, v1::Policy policy,
                                                   const v1::Dependencies& dependencies, int most) {
  // rank_us is infinite unless the trial is OK and timed.
  Statement select(
      connection,
      SelectTrials(absl::StrCat("(", WithSame(kUnderDependencies),
                                "SELECT newest.id AS trial_id, newest.rank_us AS rank_us FROM (SELECT max(id) AS id"
                                " FROM same WHERE own IS NOT TRUE GROUP BY variant_id, dependencies_id) AS others"
                                " CROSS JOIN trials AS newest ON newest.id = others.id"
                                " WHERE newest.retry = 0 AND newest.rank_us < 9e999"
                                " ORDER BY newest.rank_us, newest.id LIMIT ?8)"),
                   "ORDER BY chosen.rank_us, chosen.trial_id"));
  select.Bind(problem_text, policy, device.id, device.uuid, dependencies.toolchain(), dependencies.driver(),
              dependencies.device_fingerprint(), most);
  return ReadAll(select);
}

}  // namespace attune::store::sqlite
