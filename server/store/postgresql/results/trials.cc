#include "server/store/postgresql/results/trials.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/checks.h"
#include "server/store/merged_runs.h"
#include "server/store/postgresql/results/interned.h"
#include "server/store/read_page.h"
#include "server/store/rows/trial_columns.h"

namespace attune::store::postgresql {
namespace {

absl::StatusOr<int64_t> InsertTrial(Connection& connection, const v1::Trial& trial) {
  const absl::StatusOr<TrialIds> ids = InternTrial(connection, trial);
  if (!ids.ok()) return ids.status();
  std::optional<int64_t> finish;
  if (trial.has_finish_time()) finish = ToNanoseconds(trial.finish_time());
  const std::string body = BodyOf(trial);
  const std::string recipe = trial.recipe().SerializeAsString();
  std::optional<Blob> with_recipe;
  if (trial.has_recipe()) with_recipe = Blob{recipe};
  absl::StatusOr<Rows> made =
      Sql("WITH made AS (INSERT INTO trials (problem_id, device_id, uuid_id, family_id, variant_id, dependencies_id,"
          " policy, verdict, rank_us, job, finish_ns, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id),"
          " body AS (INSERT INTO trial_bodies SELECT id, ? FROM made)",
          ids->problem, ids->card.device, ids->card.uuid, ids->family, ids->variant, ids->dependencies, trial.policy(),
          trial.verdict(), RankOf(trial), Blob{trial.job()}, finish, static_cast<int64_t>(body.size() + recipe.size()),
          Blob{body})
          .Add(
              ", given AS (SELECT ?::bytea AS recipe), with_recipe AS (INSERT INTO trial_recipes"
              " SELECT id, recipe FROM made, given WHERE recipe IS NOT NULL) SELECT id FROM made",
              with_recipe)
          .Query(connection);
  if (!made.ok()) return made.status();
  if (!*made->Step()) return absl::InternalError("a new trial has no row");
  return made->Int(0);
}

// Behind WHERE; true where nothing is filtered.
void AddConditions(const v1::TrialFilter& filter, Sql& sql) {
  sql.Add("true");
  if (!filter.problem().empty()) {
    sql.Add(" AND problem_id = (SELECT id FROM problems WHERE text = ?)", filter.problem());
  }
  if (!filter.device_id().empty()) {
    sql.Add(" AND device_id = (SELECT id FROM devices WHERE name = ?)", filter.device_id());
  }
  if (!filter.device_class().empty()) {
    sql.Add(" AND dependencies_id IN (SELECT id FROM dependencies WHERE device_fingerprint = ?)",
            filter.device_class());
  }
  if (!filter.device_uuid().empty()) {
    sql.Add(" AND uuid_id = (SELECT id FROM devices WHERE name = ?)", filter.device_uuid());
  }
  if (!filter.family().empty()) {
    sql.Add(" AND family_id = (SELECT id FROM families WHERE name = ?)", filter.family());
  }
  if (filter.policy() != v1::POLICY_UNSPECIFIED) sql.Add(" AND policy = ?", filter.policy());
  if (!filter.job().empty()) {
    sql.Add(
        " AND job IN (SELECT ?::bytea UNION ALL SELECT convert_to(part.name, 'UTF8') FROM jobs AS part"
        " JOIN jobs AS parent ON parent.id = part.parent_id WHERE convert_to(parent.name, 'UTF8') = ?)",
        Blob{filter.job()}, Blob{filter.job()});
  }
  if (!filter.verdicts().empty()) sql.Add(absl::StrCat(" AND verdict IN ", VerdictsOf(filter)));
}

absl::StatusOr<int64_t> FindTrialId(Connection& connection, absl::string_view name) {
  const absl::StatusOr<std::optional<int64_t>> id =
      Sql("SELECT id FROM trials WHERE id = ? FOR NO KEY UPDATE", IdOf(kTrials, name)).FindInt(connection);
  if (!id.ok()) return id.status();
  if (!id->has_value()) return NoTrial(name);
  return **id;
}

// `column`: of the program's own, nothing to quote.
absl::Status PutReport(Connection& connection, int64_t trial_id, absl::string_view column, const std::string& message) {
  return Sql(absl::StrCat("INSERT INTO trial_reports (trial_id, ", column,
                          ") VALUES (?, ?) ON CONFLICT (trial_id) DO UPDATE SET ", column, " = excluded.", column),
             trial_id, Blob{message})
      .Execute(connection);
}

}  // namespace

std::string SelectTrials() { return absl::StrCat("SELECT", kTrialColumns, "FROM "); }

std::string SelectWholeTrials(absl::string_view more_columns) {
  return absl::StrCat("SELECT", kTrialColumns,
                      ", (SELECT message FROM trial_recipes WHERE trial_id = trials.id),"
                      " (SELECT profile FROM trial_reports WHERE trial_id = trials.id),"
                      " (SELECT sanitizing FROM trial_reports WHERE trial_id = trials.id)",
                      more_columns, " FROM ");
}

absl::StatusOr<v1::Trial> ReadWholeTrial(const Rows& row) {
  absl::StatusOr<v1::Trial> trial = ReadTrial(row);
  if (!trial.ok()) return trial;
  if (!row.IsNull(kTrialColumnCount)) {
    absl::Status status = Parse(row.Bytes(kTrialColumnCount), "recipe", *trial->mutable_recipe());
    if (!status.ok()) return status;
  }
  ReadReports(row, kTrialColumnCount + 1, kTrialColumnCount + 2, ReadTrialId(row), *trial);
  return trial;
}

absl::StatusOr<std::string> AppendTrial(Connection& connection, const v1::Trial& trial, const JobWrite& write,
                                        MadeRow& made) {
  if (absl::Status status = CheckTrial(trial); !status.ok()) return status;
  const absl::StatusOr<int64_t> id = Once(connection, write, made, [&] { return InsertTrial(connection, trial); });
  if (!id.ok()) return id.status();
  return absl::StrCat(kTrials, *id);
}

absl::StatusOr<v1::Trial> GetTrial(Connection& connection, absl::string_view name) {
  absl::StatusOr<Rows> rows =
      Sql(absl::StrCat(SelectWholeTrials(), "(SELECT ?::bigint AS trial_id)", kTrialsOfChosen), IdOf(kTrials, name))
          .Query(connection);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return NoTrial(name);
  return ReadWholeTrial(*rows);
}

absl::StatusOr<Page<v1::Trial>> ListTrials(Connection& connection, const v1::TrialFilter& filter,
                                           v1::ListTrialsRequest::Order order, int page_size,
                                           absl::string_view page_token) {
  const bool fastest = order == v1::ListTrialsRequest::ORDER_FASTEST;
  const std::string listing = NameOf(filter, order);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const int size = PageSize(page_size);
  // The rows of the page are chosen among narrow ones, and only then read whole.
  Sql sql(absl::StrCat(SelectTrials(), "(SELECT id AS trial_id, rank_us FROM trials WHERE "));
  AddConditions(filter, sql);
  if (after->has_value() && fastest) sql.Add(" AND (rank_us, id) > (?, ?)", (*after)->rank, (*after)->id);
  if (after->has_value() && !fastest) sql.Add(" AND id < ?", (*after)->id);
  sql.Add(fastest ? " ORDER BY rank_us, id LIMIT ?)" : " ORDER BY id DESC LIMIT ?)", size + 1);
  sql.Add(kTrialsOfChosen);
  sql.Add(fastest ? "ORDER BY chosen.rank_us, chosen.trial_id" : "ORDER BY chosen.trial_id DESC");
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  return ReadPage<v1::Trial>(*rows, "trials", listing, size, ReadListedTrial<Rows>, [](const Rows& row) {
    return PageKey{ReadTrialId(row), ReadTrialRank(row)};
  });
}

absl::StatusOr<Retried> RetryTrials(Connection& connection, const v1::TrialFilter& filter) {
  Sql sql("WITH changed AS (UPDATE trials SET retry = true WHERE NOT retry AND ");
  AddConditions(filter, sql);
  sql.Add(
      " RETURNING problem_id) SELECT count(*), text FROM changed JOIN problems ON problems.id = problem_id"
      " GROUP BY text ORDER BY text COLLATE \"C\"");
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  Retried retried;
  while (*rows->Step()) {
    retried.trials += rows->Int(0);
    retried.problems.emplace_back(rows->Text(1));
  }
  return retried;
}

absl::Status RecordProfile(Connection& connection, absl::string_view trial, const v1::Profile& profile,
                           const JobWrite& write) {
  return WhileHeld(connection, write, [&]() -> absl::Status {
    const absl::StatusOr<int64_t> id = FindTrialId(connection, trial);
    return id.ok() ? PutReport(connection, *id, "profile", profile.SerializeAsString()) : id.status();
  });
}

absl::Status RecordSanitizing(Connection& connection, absl::string_view trial, const v1::Sanitizing& sanitizing,
                              const JobWrite& write) {
  return WhileHeld(connection, write, [&]() -> absl::Status {
    const absl::StatusOr<int64_t> id = FindTrialId(connection, trial);
    if (!id.ok()) return id.status();
    absl::StatusOr<Rows> rows =
        Sql("SELECT profile, sanitizing FROM trial_reports WHERE trial_id = ?", *id).Query(connection);
    if (!rows.ok()) return rows.status();
    v1::Trial before;
    if (*rows->Step()) ReadReports(*rows, 0, 1, *id, before);
    return PutReport(connection, *id, "sanitizing", MergedRuns(before.sanitizing(), sanitizing).SerializeAsString());
  });
}

}  // namespace attune::store::postgresql
