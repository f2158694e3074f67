#include "server/store/postgresql/results/incumbents.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/checks.h"
#include "server/store/postgresql/results/interned.h"
#include "server/store/postgresql/results/trials.h"
#include "server/store/postgresql/sql.h"
#include "server/store/read_page.h"
#include "server/store/rows/incumbent_columns.h"
#include "server/store/rows/trial_columns.h"

namespace attune::store::postgresql {
namespace {

constexpr absl::string_view kOfProblem =
    "problem_id = (SELECT id FROM problems WHERE text = ?)"
    " AND class_id = (SELECT id FROM device_classes WHERE fingerprint = ?) AND policy = ?";

// Incumbents with their trials, newest first: of those for which `where` is true; nothing for `most`: all.
Sql SelectIncumbents(const Sql& where, std::optional<int> most) {
  Sql sql(absl::StrCat(SelectWholeTrials(absl::StrCat(",", kIncumbentColumns)), "(SELECT * FROM incumbents WHERE "));
  sql.Add(where);
  sql.Add(" ORDER BY id DESC LIMIT ?) AS incumbents CROSS JOIN LATERAL (SELECT incumbents.trial_id AS trial_id)", most);
  sql.Add(absl::StrCat(kTrialsOfChosen, "ORDER BY incumbents.id DESC"));
  return sql;
}

absl::StatusOr<v1::Incumbent> ReadRow(const Rows& row) {
  absl::StatusOr<v1::Trial> trial = ReadWholeTrial(row);
  if (!trial.ok()) return trial.status();
  return ReadIncumbent(row, kWholeTrialColumnCount, *std::move(trial));
}

absl::StatusOr<v1::Incumbent> ById(Connection& connection, int64_t id) {
  absl::StatusOr<Rows> rows = SelectIncumbents(Sql("id = ?", id), 1).Query(connection);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return absl::NotFoundError(absl::StrCat(IncumbentName(id), " does not exist"));
  return ReadRow(*rows);
}

// Until the transaction ends nobody else changes what is served for the problem. Trials are appended all the same.
absl::Status LockProblem(Connection& connection, absl::string_view problem_text) {
  return Sql("SELECT id FROM problems WHERE text = ? FOR NO KEY UPDATE", problem_text).Execute(connection);
}

absl::StatusOr<std::optional<int64_t>> ServedId(Connection& connection, absl::string_view problem_text,
                                                absl::string_view device_class, v1::Policy policy) {
  return Sql(absl::StrCat("SELECT id FROM incumbents WHERE served AND ", kOfProblem), problem_text, device_class,
             policy)
      .FindInt(connection);
}

// What callers know the served one by: nothing when its row is damaged, so that another takes its place.
absl::StatusOr<std::string> ReadableName(Connection& connection, std::optional<int64_t> served) {
  if (!served.has_value()) return std::string();
  const absl::Status status = ById(connection, *served).status();
  if (status.ok()) return IncumbentName(*served);
  if (IsDamagedRow(status)) return std::string();
  return status;
}

absl::Status SetServed(Connection& connection, int64_t id, bool served) {
  return Sql("UPDATE incumbents SET served = ?, changed = clock_timestamp() WHERE id = ?", served, id)
      .Execute(connection);
}

absl::StatusOr<int64_t> Insert(Connection& connection, const v1::Incumbent& incumbent, const v1::Trial& trial,
                               std::optional<int64_t> previous) {
  const absl::StatusOr<int64_t> device_class = InternClass(connection, ClassOf(trial));
  if (!device_class.ok()) return device_class;
  const std::string beside = BesideOf(incumbent);
  const std::string timing = incumbent.timing().SerializeAsString();
  std::optional<Blob> measured;
  if (incumbent.has_timing()) measured = Blob{timing};
  absl::StatusOr<std::optional<int64_t>> id =
      Sql("INSERT INTO incumbents (problem_id, device_id, policy, trial_id, class_id, promote_ns, job, previous_id,"
          " why, served, ties, timing, pinned) SELECT problem_id, device_id, policy, id, ?, ?, ?, ?, ?, true, ?, ?, ?"
          " FROM trials WHERE id = ? RETURNING id",
          *device_class, ToNanoseconds(incumbent.has_promote_time() ? incumbent.promote_time() : Now()),
          Blob{incumbent.job()}, previous, Blob{incumbent.why()}, Blob{beside}, measured, incumbent.pinned(),
          IdOf(kTrials, trial.name()))
          .FindInt(connection);
  if (!id.ok()) return id.status();
  if (!id->has_value()) return NoTrial(trial.name());
  return **id;
}

// The id of the one made.
absl::StatusOr<int64_t> MakeServed(Connection& connection, const v1::Incumbent& incumbent,
                                   absl::string_view expected_previous) {
  absl::StatusOr<v1::Trial> trial = GetTrial(connection, incumbent.trial().name());
  if (!trial.ok()) return trial.status();
  if (absl::Status status = CheckIncumbent(incumbent, *trial); !status.ok()) return status;
  if (absl::Status status = LockProblem(connection, trial->problem_text()); !status.ok()) return status;
  const absl::StatusOr<std::optional<int64_t>> served =
      ServedId(connection, trial->problem_text(), ClassOf(*trial), trial->policy());
  if (!served.ok()) return served.status();
  const absl::StatusOr<std::string> readable = ReadableName(connection, *served);
  if (!readable.ok()) return readable.status();
  if (absl::Status status = CheckExpected(*readable, expected_previous, *trial); !status.ok()) return status;
  if (served->has_value()) {
    if (absl::Status status = SetServed(connection, **served, false); !status.ok()) return status;
  }
  return Insert(connection, incumbent, *trial, *served);
}

// Those served before `id`, newest first.
absl::StatusOr<std::vector<int64_t>> AllBefore(Connection& connection, int64_t id) {
  return Sql("WITH RECURSIVE before AS (SELECT previous_id, 1 AS steps FROM incumbents WHERE id = ?"
             " UNION ALL SELECT incumbents.previous_id, steps + 1 FROM incumbents"
             " JOIN before ON incumbents.id = before.previous_id)"
             " SELECT previous_id FROM before WHERE previous_id IS NOT NULL ORDER BY steps",
             id)
      .Ints(connection);
}

// Whether a former try of this rollback was carried out.
bool WasMade(const MadeRollBack& made, std::optional<int64_t> served) { return made.to != 0 && served == made.to; }

}  // namespace

absl::StatusOr<v1::Incumbent> Promote(Connection& connection, const v1::Incumbent& incumbent,
                                      absl::string_view expected_previous, const JobWrite& write, MadeRow& made) {
  const absl::StatusOr<int64_t> id =
      Once(connection, write, made, [&] { return MakeServed(connection, incumbent, expected_previous); });
  if (!id.ok()) return id.status();
  return ById(connection, *id);
}

absl::StatusOr<v1::Incumbent> RollBack(Connection& connection, absl::string_view problem_text,
                                       absl::string_view device_class, v1::Policy policy, absl::string_view why,
                                       absl::string_view to, MadeRollBack& made) {
  if (absl::Status status = LockProblem(connection, problem_text); !status.ok()) return status;
  const absl::StatusOr<std::optional<int64_t>> served = ServedId(connection, problem_text, device_class, policy);
  if (!served.ok()) return served.status();
  if (WasMade(made, *served)) return ById(connection, made.to);
  const std::string whose = WordsOf(problem_text, device_class, policy);
  if (!served->has_value()) return NothingToRollBack(whose);
  const absl::StatusOr<std::vector<int64_t>> before = AllBefore(connection, **served);
  if (!before.ok()) return before.status();
  const absl::StatusOr<int64_t> target =
      WhereToGoBack(**served, *before, to, whose, [&](int64_t id) { return ById(connection, id); });
  if (!target.ok()) return target.status();
  std::vector<int64_t> passed(before->begin(), std::find(before->begin(), before->end(), *target));
  passed.push_back(**served);
  absl::Status status = Sql("UPDATE incumbents SET served = false, rolled_back_why = ?, changed = clock_timestamp() "
                            "WHERE id = ANY (?::text::bigint[])",
                            Blob{why}, ArrayOf(passed))
                            .Execute(connection);
  if (!status.ok()) return status;
  if (status = SetServed(connection, *target, true); !status.ok()) return status;
  made = {**served, *target};
  return ById(connection, *target);
}

absl::StatusOr<v1::Incumbent> Unpin(Connection& connection, absl::string_view problem_text,
                                    absl::string_view device_class, v1::Policy policy) {
  if (absl::Status status = LockProblem(connection, problem_text); !status.ok()) return status;
  absl::Status status =
      Sql(absl::StrCat("UPDATE incumbents SET pinned = false, changed = clock_timestamp() WHERE served AND ",
                       kOfProblem),
          problem_text, device_class, policy)
          .Execute(connection);
  if (!status.ok()) return status;
  return GetIncumbent(connection, problem_text, device_class, policy);
}

absl::StatusOr<v1::Incumbent> GetIncumbent(Connection& connection, absl::string_view problem_text,
                                           absl::string_view device_class, v1::Policy policy) {
  absl::StatusOr<Rows> rows =
      SelectIncumbents(Sql(absl::StrCat("served AND ", kOfProblem), problem_text, device_class, policy), 1)
          .Query(connection);
  if (!rows.ok()) return rows.status();
  const std::string whose = WordsOf(problem_text, device_class, policy);
  if (!*rows->Step()) return NoIncumbent(whose);
  absl::StatusOr<v1::Incumbent> incumbent = ReadRow(*rows);
  if (SkipDamaged(incumbent.status(), "incumbents", rows->Int(kWholeTrialColumnCount))) {
    return NoReadableIncumbent(whose);
  }
  return incumbent;
}

absl::StatusOr<std::vector<ServedChange>> ChangesOfServed(Connection& connection, absl::Duration back) {
  absl::StatusOr<Rows> rows =
      Sql("SELECT text, fingerprint, policy, (extract(epoch FROM max(changed)) * 1000000)::bigint FROM incumbents"
          " JOIN problems ON problems.id = problem_id JOIN device_classes ON device_classes.id = class_id"
          " WHERE changed > now() - ?::bigint * interval '1 millisecond' GROUP BY text, fingerprint, policy",
          absl::ToInt64Milliseconds(back))
          .Query(connection);
  if (!rows.ok()) return rows.status();
  std::vector<ServedChange> changes;
  while (*rows->Step()) {
    changes.push_back({std::string(rows->Text(0)), std::string(rows->Text(1)), static_cast<v1::Policy>(rows->Int(2)),
                       absl::FromUnixMicros(rows->Int(3))});
  }
  return changes;
}

absl::StatusOr<std::vector<v1::Incumbent>> IncumbentsOf(Connection& connection,
                                                        const std::vector<std::string>& problem_texts) {
  const Sql where("served AND problem_id IN (SELECT id FROM problems WHERE text = ANY (?::text::text[]))",
                  ArrayOf(problem_texts));
  absl::StatusOr<Rows> rows = SelectIncumbents(where, std::nullopt).Query(connection);
  if (!rows.ok()) return rows.status();
  std::vector<v1::Incumbent> incumbents;
  while (*rows->Step()) {
    absl::StatusOr<v1::Incumbent> incumbent = ReadRow(*rows);
    if (incumbent.ok()) {
      incumbents.push_back(*std::move(incumbent));
    } else if (!SkipDamaged(incumbent.status(), "incumbents", rows->Int(kWholeTrialColumnCount))) {
      return incumbent.status();
    }
  }
  return incumbents;
}

absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(Connection& connection, const IncumbentFilter& filter, int page_size,
                                                   absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const int size = PageSize(page_size);
  Sql where(filter.history ? "true" : "served");
  if (after->has_value()) where.Add(" AND id < ?", (*after)->id);
  if (!filter.problem_text.empty()) {
    where.Add(" AND problem_id = (SELECT id FROM problems WHERE text = ?)", filter.problem_text);
  }
  if (!filter.device_class.empty()) {
    where.Add(" AND class_id = (SELECT id FROM device_classes WHERE fingerprint = ?)", filter.device_class);
  }
  if (!filter.device_id.empty()) {
    where.Add(" AND device_id = (SELECT id FROM devices WHERE name = ?)", filter.device_id);
  }
  if (filter.policy.has_value()) where.Add(" AND policy = ?", *filter.policy);
  absl::StatusOr<Rows> rows = SelectIncumbents(where, size + 1).Query(connection);
  if (!rows.ok()) return rows.status();
  return ReadPage<v1::Incumbent>(*rows, "incumbents", listing, size, ReadRow,
                                 [](const Rows& row) { return PageKey{.id = row.Int(kWholeTrialColumnCount)}; });
}

}  // namespace attune::store::postgresql
