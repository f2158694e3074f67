#include "server/store/sqlite/maintenance/retention_pass.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/store/maintenance/retention_pass.h"
#include "server/store/rows/names.h"
#include "server/store/sqlite/database.h"

namespace attune::store::sqlite {
namespace {

// A list of numbers as json_each takes it.
std::string List(const std::vector<int64_t>& ids) { return absl::StrCat("[", absl::StrJoin(ids, ","), "]"); }

absl::StatusOr<std::vector<int64_t>> Ids(Statement& select) {
  std::vector<int64_t> ids;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return ids;
    ids.push_back(select.Int(0));
  }
}

// The trials of ?1 (a problem) and ?2 (dependencies) that may go. ?3: whether the dependencies are current; ?4: the
// fastest trials where there is an incumbent.
constexpr absl::string_view kMayGo =
    " FROM trials AS t WHERE problem_id = ?1 AND dependencies_id = ?2"
    " AND NOT EXISTS (SELECT 1 FROM incumbents WHERE trial_id = t.id)"
    " AND id NOT IN (SELECT value FROM json_each(?4))"
    " AND NOT EXISTS (SELECT 1 FROM trials AS older WHERE older.problem_id = ?1 AND older.policy = t.policy"
    " AND older.variant_id = t.variant_id AND older.dependencies_id = ?2 AND older.id < t.id)";

// The end of kMayGo: bad verdicts of today stay, unless a newer one counts in their place: one of the same card, or of
// any card of the class if it holds for the class.
std::string ButTodaysBadVerdicts() {
  return absl::StrCat(" AND (?3 = 0 OR retry = 1 OR verdict IN ", VerdictsThatMayGo(),
                      " OR EXISTS (SELECT 1 FROM trials AS newer WHERE newer.problem_id = ?1"
                      " AND newer.policy = t.policy AND newer.variant_id = t.variant_id AND newer.dependencies_id = ?2"
                      " AND newer.verdict <> ",
                      v1::VERDICT_LOST, " AND newer.id > t.id AND (newer.verdict IN ", VerdictsOfTheClass(),
                      " OR newer.device_id = t.device_id AND newer.uuid_id IS t.uuid_id)))");
}

// The fastest trials of the problem on each card of a class that has an incumbent under a policy, by that policy.
absl::StatusOr<std::vector<int64_t>> FastestServed(Connection& connection, int64_t problem) {
  Statement served(connection,
                   "SELECT devices.id, policy, class_id FROM incumbents CROSS JOIN devices WHERE problem_id = ?1"
                   " AND served = 1 AND EXISTS (SELECT 1 FROM trials WHERE problem_id = ?1"
                   " AND trials.device_id = devices.id AND trials.policy = incumbents.policy)");
  served.Bind(problem);
  std::vector<int64_t> fastest;
  for (;;) {
    absl::StatusOr<bool> row = served.Step();
    if (!row.ok()) return row.status();
    if (!*row) return fastest;
    Statement select(connection,
                     "SELECT id FROM trials WHERE problem_id = ? AND device_id = ? AND policy = ? AND rank_us < 9e999"
                     " AND dependencies_id IN (SELECT dependencies.id FROM dependencies JOIN device_classes"
                     " ON fingerprint = device_fingerprint WHERE device_classes.id = ?) ORDER BY rank_us, id LIMIT ?");
    select.Bind(problem, served.Int(0), served.Int(1), served.Int(2), kServedTrials);
    absl::StatusOr<std::vector<int64_t>> ids = Ids(select);
    if (!ids.ok()) return ids.status();
    fastest.insert(fastest.end(), ids->begin(), ids->end());
  }
}

// Found by reading, removed by the writer.
class SqliteRows : public RetentionRows {
 public:
  SqliteRows(Connection& reader, Writer& writer, const std::vector<v1::Dependencies>& today)
      : reader_(reader), writer_(writer), today_(today) {}

  // Once, before anything else.
  absl::Status FindCurrent() {
    for (const v1::Dependencies& today : today_) {
      absl::StatusOr<std::optional<int64_t>> id =
          Statement(reader_,
                    "SELECT id FROM dependencies WHERE toolchain = ? AND driver = ? AND device_fingerprint = ?"
                    " AND source_hash = ?")
              .Bind(today.toolchain(), today.driver(), today.device_fingerprint(), today.source_hash())
              .FindInt();
      if (!id.ok()) return id.status();
      if (id->has_value()) current_.push_back(**id);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<RetentionUnit>> Units(absl::Time latest) override {
    std::vector<RetentionUnit> units;
    const int64_t latest_ns = absl::ToUnixNanos(latest);
    Statement jobs(
        reader_,
        "SELECT end_ns, id FROM jobs WHERE done = 1 AND end_ns < ? AND name NOT IN (SELECT job FROM incumbents"
        " UNION SELECT trials.job FROM incumbents JOIN trials ON trials.id = incumbents.trial_id)"
        // A job takes its parts' results when it gets to it.
        " AND (parent IS NULL OR parent NOT IN (SELECT name FROM jobs WHERE done = 0))");
    jobs.Bind(latest_ns);
    for (;;) {
      absl::StatusOr<bool> row = jobs.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      units.push_back({jobs.Int(0), RetentionUnit::kJob, jobs.Int(1)});
    }
    std::vector<std::string> toolchains;
    for (const v1::Dependencies& today : today_) toolchains.push_back(today.toolchain());
    Statement compiles(reader_, "SELECT put_ns, rowid, toolchain FROM artifacts WHERE sha256 = '' AND put_ns < ?");
    compiles.Bind(latest_ns);
    for (;;) {
      absl::StatusOr<bool> row = compiles.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      if (std::find(toolchains.begin(), toolchains.end(), compiles.Text(2)) != toolchains.end()) continue;
      units.push_back({compiles.Int(0), RetentionUnit::kCompile, compiles.Int(1)});
    }
    Statement retimings(reader_, "SELECT finish_ns, id FROM retimings WHERE finish_ns < ?");
    retimings.Bind(latest_ns);
    for (;;) {
      absl::StatusOr<bool> row = retimings.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      units.push_back({retimings.Int(0), RetentionUnit::kRetiming, retimings.Int(1)});
    }
    if (absl::Status status = AddTrials(latest_ns, units); !status.ok()) return status;
    return units;
  }

  absl::StatusOr<int64_t> Remove(RetentionUnit::Kind kind, const std::vector<int64_t>& ids) override {
    return writer_.WriteAndReturn<int64_t>([&](Connection& connection) {
      return Delete(connection, absl::StrCat(RowsOf(kind), " IN (SELECT value FROM json_each(?))"), ids);
    });
  }

  absl::StatusOr<std::vector<int64_t>> TrialsToRemove(const RetentionUnit& unit, int64_t after) override {
    absl::StatusOr<std::vector<int64_t>> fastest = FastestServed(reader_, unit.id);
    if (!fastest.ok()) return fastest.status();
    Statement select(reader_,
                     absl::StrCat("SELECT id", kMayGo, ButTodaysBadVerdicts(), " AND id > ?5 ORDER BY id LIMIT ?6"));
    select.Bind(unit.id, unit.dependencies, IsCurrent(unit) ? 1 : 0, List(*fastest), after, kRetentionBatch);
    return Ids(select);
  }

  absl::StatusOr<int64_t> RemoveTrials(const RetentionUnit& unit, const std::vector<int64_t>& ids) override {
    return writer_.WriteAndReturn<int64_t>(
        [&](Connection& connection) { return DeleteTrials(connection, unit, IsCurrent(unit), ids); });
  }

  absl::StatusOr<int64_t> UsedBytes() override {
    const absl::StatusOr<int64_t> pages = Pragma("page_count");
    if (!pages.ok()) return pages;
    const absl::StatusOr<int64_t> free = Pragma("freelist_count");
    if (!free.ok()) return free;
    const absl::StatusOr<int64_t> size = Pragma("page_size");
    if (!size.ok()) return size;
    return (*pages - *free) * *size;
  }

 private:
  bool IsCurrent(const RetentionUnit& unit) const {
    return std::find(current_.begin(), current_.end(), unit.dependencies) != current_.end();
  }

  // One scan that sorts nothing: what it takes of memory is a few words for each problem and its dependencies.
  absl::Status AddTrials(int64_t latest, std::vector<RetentionUnit>& units) {
    std::map<std::pair<int64_t, int64_t>, int64_t> used;
    for (const char* sql : {"SELECT problem_id, dependencies_id, coalesce(finish_ns, 0) FROM trials",
                            "SELECT problem_id, dependencies_id, used_ns FROM trial_uses"}) {
      Statement select(reader_, sql);
      for (;;) {
        absl::StatusOr<bool> row = select.Step();
        if (!row.ok()) return row.status();
        if (!*row) break;
        int64_t& last = used[{select.Int(0), select.Int(1)}];
        last = std::max(last, select.Int(2));
      }
    }
    Statement unfinished(reader_, "SELECT problem_id FROM jobs WHERE done = 0 AND problem_id IS NOT NULL");
    const absl::StatusOr<std::vector<int64_t>> busy = Ids(unfinished);
    if (!busy.ok()) return busy.status();
    for (const auto& [group, last] : used) {
      if (last >= latest || std::find(busy->begin(), busy->end(), group.first) != busy->end()) continue;
      units.push_back({last, RetentionUnit::kTrials, group.first, group.second});
    }
    return absl::OkStatus();
  }

  static absl::string_view RowsOf(RetentionUnit::Kind kind) {
    switch (kind) {
      case RetentionUnit::kJob:
        return "DELETE FROM jobs WHERE done = 1 AND id";
      case RetentionUnit::kCompile:
        return "DELETE FROM artifacts WHERE sha256 = '' AND rowid";
      default:
        return "DELETE FROM retimings WHERE id";
    }
  }

  static absl::StatusOr<int64_t> DeleteTrials(Connection& connection, const RetentionUnit& unit, bool is_current,
                                              const std::vector<int64_t>& ids) {
    absl::StatusOr<std::vector<int64_t>> fastest = FastestServed(connection, unit.id);
    if (!fastest.ok()) return fastest.status();
    Statement select(connection, absl::StrCat("SELECT id", kMayGo, ButTodaysBadVerdicts(),
                                              " AND id IN (SELECT value FROM json_each(?5))"));
    select.Bind(unit.id, unit.dependencies, is_current ? 1 : 0, List(*fastest), List(ids));
    absl::StatusOr<std::vector<int64_t>> gone = Ids(select);
    if (!gone.ok()) return gone.status();
    Statement used(connection, "SELECT DISTINCT variant_id FROM trials WHERE id IN (SELECT value FROM json_each(?))");
    absl::StatusOr<std::vector<int64_t>> variants = Ids(used.Bind(List(*gone)));
    if (!variants.ok()) return variants.status();
    for (const char* from : {"DELETE FROM trial_bodies WHERE trial_id IN (SELECT value FROM json_each(?))",
                             "DELETE FROM trial_recipes WHERE trial_id IN (SELECT value FROM json_each(?))",
                             "DELETE FROM trial_reports WHERE trial_id IN (SELECT value FROM json_each(?))"}) {
      if (absl::StatusOr<int64_t> deleted = Delete(connection, from, *gone); !deleted.ok()) return deleted;
    }
    absl::StatusOr<int64_t> deleted =
        Delete(connection, "DELETE FROM trials WHERE id IN (SELECT value FROM json_each(?))", *gone);
    if (!deleted.ok()) return deleted;
    absl::StatusOr<int64_t> unused = Delete(connection,
                                            "DELETE FROM variants WHERE id IN (SELECT value FROM json_each(?))"
                                            " AND NOT EXISTS (SELECT 1 FROM trials WHERE variant_id = variants.id)",
                                            *variants);
    if (!unused.ok()) return unused;
    return deleted;
  }

  static absl::StatusOr<int64_t> Delete(Connection& connection, absl::string_view sql,
                                        const std::vector<int64_t>& ids) {
    if (absl::Status status = Statement(connection, sql).Bind(List(ids)).Run(); !status.ok()) return status;
    return connection.Changes();
  }

  absl::StatusOr<int64_t> Pragma(absl::string_view name) {
    absl::StatusOr<std::optional<int64_t>> value = Statement(reader_, absl::StrCat("PRAGMA ", name)).FindInt();
    if (!value.ok()) return value.status();
    return value->value_or(0);
  }

  Connection& reader_;
  Writer& writer_;
  const std::vector<v1::Dependencies>& today_;
  std::vector<int64_t> current_;  // ids of today's dependencies
};

}  // namespace

absl::Status KeepUses(Writer& writer, TrialUses& uses) {
  const std::vector<TrialUse> noted = uses.Take();
  for (size_t begin = 0; begin < noted.size(); begin += kRetentionBatch) {
    const size_t end = std::min(noted.size(), begin + kRetentionBatch);
    absl::Status status = writer.Write([&](Connection& connection) {
      for (size_t i = begin; i < end; ++i) {
        const TrialUse& use = noted[i];
        absl::Status kept =
            Statement(connection,
                      "INSERT INTO trial_uses (problem_id, dependencies_id, used_ns) SELECT problems.id,"
                      " dependencies.id, ? FROM problems, dependencies WHERE problems.text = ?"
                      " AND toolchain = ? AND driver = ? AND device_fingerprint = ?"
                      " ON CONFLICT DO UPDATE SET used_ns = max(used_ns, excluded.used_ns)")
                .Bind(absl::ToUnixNanos(use.time), use.problem_text, use.toolchain, use.driver, use.device_fingerprint)
                .Run();
        if (!kept.ok()) return kept;
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RetainRows(const std::string& file, Writer& writer, const Retention& retention,
                        const std::function<bool()>& stopped, Retained& retained) {
  absl::StatusOr<std::unique_ptr<Connection>> reader = OpenReader(file);
  if (!reader.ok()) return reader.status();
  SqliteRows rows(**reader, writer, retention.current);
  if (absl::Status status = rows.FindCurrent(); !status.ok()) return status;
  return store::RetainRows(rows, retention, stopped, retained);
}

absl::Status ForgetArtifacts(Writer& writer, const std::vector<std::string>& sha256s) {
  return writer.Write([&](Connection& connection) {
    for (const std::string& sha256 : sha256s) {
      absl::Status status =
          Statement(connection, "DELETE FROM artifacts WHERE sha256 = ? AND sha256 <> ''").Bind(sha256).Run();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  });
}

}  // namespace attune::store::sqlite
