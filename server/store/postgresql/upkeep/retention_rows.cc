#include "server/store/postgresql/upkeep/retention_rows.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "server/store/postgresql/sql.h"
#include "server/store/rows/names.h"

namespace attune::store::postgresql {
namespace {

// What a row takes beside its messages: itself, its part of the indexes, and of a trial its body's row, too.
constexpr absl::string_view kTrialBytes =
    "(trials.bytes + 400 + coalesce((SELECT coalesce(octet_length(profile), 0) + coalesce(octet_length(sanitizing), 0)"
    " FROM trial_reports WHERE trial_id = trials.id), 0))::bigint";
constexpr absl::string_view kJobBytes = "(octet_length(request) + octet_length(operation) + 400)::bigint";
constexpr absl::string_view kCompileBytes = "(octet_length(log) + octet_length(entries) + 300)::bigint";
constexpr absl::string_view kRetimingBytes = "(octet_length(message) + 200)::bigint";

struct Removed {
  int64_t rows = 0;
  int64_t bytes = 0;
};

// Of a statement that returns bytes in the first column.
absl::StatusOr<Removed> Count(const absl::StatusOr<std::vector<int64_t>>& bytes) {
  if (!bytes.ok()) return bytes.status();
  Removed removed;
  for (const int64_t each : *bytes) {
    ++removed.rows;
    removed.bytes += each;
  }
  return removed;
}

absl::Status AddUnits(Connection& connection, RetentionUnit::Kind kind, const Sql& sql,
                      std::vector<RetentionUnit>& units) {
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  while (*rows->Step()) units.push_back({rows->Int(0), kind, rows->Int(1), rows->Int(2)});
  return absl::OkStatus();
}

// Jobs that have ended and are no incumbent's. A job takes its parts' results when it gets to it, and goes after them.
Sql Jobs(int64_t latest) {
  return Sql(
      "SELECT end_ns, id, 0 FROM jobs WHERE done AND end_ns < ? AND convert_to(name, 'UTF8') NOT IN"
      " (SELECT job FROM incumbents UNION SELECT trials.job FROM incumbents JOIN trials ON trials.id = trial_id)"
      " AND NOT EXISTS (SELECT 1 FROM jobs AS parent WHERE parent.id = jobs.parent_id AND NOT parent.done)"
      " AND NOT EXISTS (SELECT 1 FROM jobs AS part WHERE part.parent_id = jobs.id)",
      latest);
}

Sql FailedCompiles(int64_t latest) {
  return Sql(absl::StrCat("SELECT put_ns, id, 0 FROM artifacts WHERE sha256 = '' AND put_ns < ? AND toolchain NOT IN"
                          " (SELECT toolchain FROM dependencies WHERE seen > now() - ",
                          RetentionRows::kToday, ")"),
             latest);
}

Sql Trials(int64_t latest) {
  return Sql(
      "SELECT greatest(made.ns, used.used_ns), made.problem_id, made.dependencies_id FROM"
      " (SELECT problem_id, dependencies_id, max(coalesce(finish_ns, 0)) AS ns FROM trials GROUP BY 1, 2) AS made"
      " LEFT JOIN trial_uses AS used USING (problem_id, dependencies_id)"
      " WHERE greatest(made.ns, used.used_ns) < ? AND made.problem_id NOT IN"
      " (SELECT problems.id FROM jobs JOIN problems ON problems.text = jobs.problem WHERE NOT jobs.done)",
      latest);
}

// Behind WHERE: the trials of a unit that may go. Where a class has an incumbent under a policy, the fastest of each
// card of the class stay.
Sql MayGo(const RetentionUnit& unit, bool is_current) {
  Sql sql(
      "trials.problem_id = ? AND trials.dependencies_id = ?"
      " AND NOT EXISTS (SELECT 1 FROM incumbents WHERE trial_id = trials.id)"
      " AND NOT EXISTS (SELECT 1 FROM trials AS older WHERE older.problem_id = trials.problem_id"
      " AND older.policy = trials.policy AND older.variant_id = trials.variant_id"
      " AND older.dependencies_id = trials.dependencies_id AND older.id < trials.id)",
      unit.id, unit.dependencies);
  sql.Add(
      " AND trials.id NOT IN (SELECT fastest.id FROM incumbents JOIN device_classes ON device_classes.id = class_id"
      " CROSS JOIN LATERAL (SELECT DISTINCT device_id, uuid_id FROM trials AS ran"
      " WHERE ran.problem_id = incumbents.problem_id AND ran.policy = incumbents.policy) AS card"
      " CROSS JOIN LATERAL (SELECT timed.id FROM trials AS timed JOIN dependencies ON dependencies.id = dependencies_id"
      " WHERE timed.problem_id = incumbents.problem_id AND timed.device_id = card.device_id"
      " AND timed.uuid_id IS NOT DISTINCT FROM card.uuid_id AND timed.policy = incumbents.policy"
      " AND timed.rank_us < 'Infinity' AND device_fingerprint = fingerprint ORDER BY timed.rank_us, timed.id LIMIT ?)"
      " AS fastest WHERE incumbents.problem_id = ? AND served)",
      kServedTrials, unit.id);
  if (!is_current) return sql;
  // Bad verdicts of today stay, unless a newer one counts in their place: one of the same card, or of any card of the
  // class if it holds for the class.
  sql.Add(
      absl::StrCat(" AND (trials.retry OR trials.verdict IN ", VerdictsThatMayGo(),
                   " OR EXISTS (SELECT 1 FROM trials AS newer WHERE newer.problem_id = trials.problem_id"
                   " AND newer.policy = trials.policy AND newer.variant_id = trials.variant_id"
                   " AND newer.dependencies_id = trials.dependencies_id AND newer.verdict <> ",
                   v1::VERDICT_LOST, " AND newer.id > trials.id AND (newer.verdict IN ", VerdictsOfTheClass(),
                   " OR newer.device_id = trials.device_id AND newer.uuid_id IS NOT DISTINCT FROM trials.uuid_id)))"));
  return sql;
}

absl::StatusOr<Removed> DeleteTrials(Connection& connection, const RetentionUnit& unit, bool is_current,
                                     const std::vector<int64_t>& ids) {
  absl::StatusOr<Rows> rows =
      Sql("DELETE FROM trials WHERE ")
          .Add(MayGo(unit, is_current))
          .Add(absl::StrCat(" AND trials.id = ANY (?::text::bigint[]) RETURNING ", kTrialBytes, ", variant_id"),
               ArrayOf(ids))
          .Query(connection);
  if (!rows.ok()) return rows.status();
  Removed removed;
  std::vector<int64_t> variants;
  while (*rows->Step()) {
    ++removed.rows;
    removed.bytes += rows->Int(0);
    variants.push_back(rows->Int(1));
  }
  absl::Status status = Sql("DELETE FROM variants WHERE id = ANY (?::text::bigint[])"
                            " AND NOT EXISTS (SELECT 1 FROM trials WHERE variant_id = variants.id)",
                            ArrayOf(variants))
                            .Execute(connection);
  if (!status.ok()) return status;
  return removed;
}

std::string DeleteSql(RetentionUnit::Kind kind) {
  switch (kind) {
    case RetentionUnit::kJob:
      return absl::StrCat(
          "DELETE FROM jobs WHERE done AND NOT EXISTS (SELECT 1 FROM jobs AS part"
          " WHERE part.parent_id = jobs.id) AND id = ANY (?::text::bigint[]) RETURNING ",
          kJobBytes);
    case RetentionUnit::kCompile:
      return absl::StrCat("DELETE FROM artifacts WHERE sha256 = '' AND id = ANY (?::text::bigint[]) RETURNING ",
                          kCompileBytes);
    default:
      return absl::StrCat("DELETE FROM retimings WHERE id = ANY (?::text::bigint[]) RETURNING ", kRetimingBytes);
  }
}

}  // namespace

absl::Status KeepUses(Pool& pool, TrialUses& uses) {
  const std::vector<TrialUse> noted = uses.Take();
  for (size_t begin = 0; begin < noted.size(); begin += kRetentionBatch) {
    const size_t end = std::min<size_t>(noted.size(), begin + kRetentionBatch);
    absl::Status status = pool.Transact([&](Connection& connection) -> absl::Status {
      for (size_t i = begin; i < end; ++i) {
        const TrialUse& use = noted[i];
        absl::Status kept =
            Sql("INSERT INTO trial_uses (problem_id, dependencies_id, used_ns) SELECT problems.id, dependencies.id, ?"
                " FROM problems, dependencies WHERE problems.text = ? AND toolchain = ? AND driver = ?"
                " AND device_fingerprint = ? ON CONFLICT (problem_id, dependencies_id)"
                " DO UPDATE SET used_ns = greatest(trial_uses.used_ns, excluded.used_ns)",
                absl::ToUnixNanos(use.time), use.problem_text, use.toolchain, use.driver, use.device_fingerprint)
                .Execute(connection);
        if (!kept.ok()) return kept;
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<RetentionRows> RetentionRows::Open(Pool* pool, const std::vector<v1::Dependencies>& today) {
  RetentionRows rows(pool);
  absl::Status told = pool->Transact([&](Connection& connection) -> absl::Status {
    for (const v1::Dependencies& on : today) {
      absl::Status seen =
          Sql("INSERT INTO dependencies (toolchain, driver, device_fingerprint, source_hash, seen)"
              " VALUES (?, ?, ?, ?, now()) ON CONFLICT (toolchain, driver, device_fingerprint, source_hash)"
              " DO UPDATE SET seen = now()",
              on.toolchain(), on.driver(), on.device_fingerprint(), on.source_hash())
              .Execute(connection);
      if (!seen.ok()) return seen;
    }
    absl::StatusOr<std::vector<int64_t>> current =
        Sql(absl::StrCat("SELECT id FROM dependencies WHERE seen > now() - ", kToday)).Ints(connection);
    if (!current.ok()) return current.status();
    rows.current_ = *std::move(current);
    return absl::OkStatus();
  });
  if (!told.ok()) return told;
  return rows;
}

bool RetentionRows::IsCurrent(const RetentionUnit& unit) const {
  return std::find(current_.begin(), current_.end(), unit.dependencies) != current_.end();
}

absl::StatusOr<std::vector<RetentionUnit>> RetentionRows::Units(absl::Time latest) {
  using Units = std::vector<RetentionUnit>;
  const int64_t latest_ns = absl::ToUnixNanos(latest);
  return pool_->DoAndReturn<Units>([&](Connection& connection) -> absl::StatusOr<Units> {
    Units units;
    absl::Status status = AddUnits(connection, RetentionUnit::kJob, Jobs(latest_ns), units);
    if (!status.ok()) return status;
    status = AddUnits(connection, RetentionUnit::kCompile, FailedCompiles(latest_ns), units);
    if (!status.ok()) return status;
    status = AddUnits(connection, RetentionUnit::kRetiming,
                      Sql("SELECT finish_ns, id, 0 FROM retimings WHERE finish_ns < ?", latest_ns), units);
    if (!status.ok()) return status;
    status = AddUnits(connection, RetentionUnit::kTrials, Trials(latest_ns), units);
    if (!status.ok()) return status;
    return units;
  });
}

absl::StatusOr<int64_t> RetentionRows::Remove(RetentionUnit::Kind kind, const std::vector<int64_t>& ids) {
  const absl::StatusOr<Removed> removed = pool_->DoAndReturn<Removed>(
      [&](Connection& connection) { return Count(Sql(DeleteSql(kind), ArrayOf(ids)).Ints(connection)); });
  if (!removed.ok()) return removed.status();
  if (bytes_.has_value()) *bytes_ -= removed->bytes;
  return removed->rows;
}

absl::StatusOr<std::vector<int64_t>> RetentionRows::TrialsToRemove(const RetentionUnit& unit, int64_t after) {
  return pool_->DoAndReturn<std::vector<int64_t>>([&](Connection& connection) {
    return Sql("SELECT id FROM trials WHERE ")
        .Add(MayGo(unit, IsCurrent(unit)))
        .Add(" AND id > ? ORDER BY id LIMIT ?", after, kRetentionBatch)
        .Ints(connection);
  });
}

absl::StatusOr<int64_t> RetentionRows::RemoveTrials(const RetentionUnit& unit, const std::vector<int64_t>& ids) {
  const absl::StatusOr<Removed> removed = pool_->TransactAndReturn<Removed>(
      [&](Connection& connection) { return DeleteTrials(connection, unit, IsCurrent(unit), ids); });
  if (!removed.ok()) return removed.status();
  if (bytes_.has_value()) *bytes_ -= removed->bytes;
  return removed->rows;
}

absl::StatusOr<int64_t> RetentionRows::UsedBytes() {
  if (bytes_.has_value()) return *bytes_;
  const absl::StatusOr<std::vector<int64_t>> all = pool_->DoAndReturn<std::vector<int64_t>>([](Connection& connection) {
    return Sql(absl::StrCat("SELECT coalesce(sum(", kTrialBytes, "), 0)::bigint FROM trials UNION ALL SELECT",
                            " coalesce(sum(", kJobBytes, "), 0)::bigint FROM jobs UNION ALL SELECT coalesce(sum(",
                            kCompileBytes, "), 0)::bigint FROM artifacts UNION ALL SELECT coalesce(sum(",
                            kRetimingBytes, "), 0)::bigint FROM retimings"))
        .Ints(connection);
  });
  if (!all.ok()) return all.status();
  bytes_ = 0;
  for (const int64_t part : *all) *bytes_ += part;
  return *bytes_;
}

}  // namespace attune::store::postgresql
