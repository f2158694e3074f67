#include "server/store/sqlite/maintenance/retention_pass.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/known_trials.h"

namespace attune::store::sqlite {
namespace {

// Rows that one request to the writer removes: a few milliseconds.
constexpr int kRowsABatch = 200;
// The file keeps the size that it once had, and uses its free pages again. It stays below its limit when pages are
// freed in time: from nine tenths of the limit on, until eight are in use.
int64_t Begin(int64_t limit) { return limit - limit / 10; }
int64_t Target(int64_t limit) { return limit - limit / 5; }

// What goes together, and when it was last used: one job, one failed compile, one retiming, or the trials of a problem
// under dependencies.
struct Unit {
  enum Kind { kJob, kCompile, kTrials, kRetiming };
  int64_t used_ns = 0;
  Kind kind = kJob;
  int64_t id = 0;            // of the row; of kTrials the problem's
  int64_t dependencies = 0;  // of kTrials
};

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
  return absl::StrCat(" AND (?3 = 0 OR retry = 1 OR verdict IN (", v1::VERDICT_OK, ", ", v1::VERDICT_SLOW, ", ",
                      v1::VERDICT_LOST,
                      ") OR EXISTS (SELECT 1 FROM trials AS newer WHERE newer.problem_id = ?1"
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

// One pass over all that may go.
class Pass {
 public:
  Pass(Connection& reader, Writer& writer, const Retention& retention, const std::function<bool()>& stopped,
       Retained& retained)
      : reader_(reader), writer_(writer), retention_(retention), stopped_(stopped), retained_(retained) {}

  absl::Status Run() {
    if (absl::Status status = FindCurrent(); !status.ok()) return status;
    absl::StatusOr<std::vector<Unit>> units = Units();
    if (!units.ok()) return units.status();
    if (absl::Status status = RemoveOld(*units); !status.ok()) return status;
    if (absl::Status status = RemoveForSize(*units); !status.ok()) return status;
    absl::StatusOr<int64_t> bytes = UsedBytes();
    if (!bytes.ok()) return bytes.status();
    retained_.database_bytes = *bytes;
    return absl::OkStatus();
  }

 private:
  int64_t Before(absl::Duration age) const {
    return age == absl::InfiniteDuration() ? 0 : absl::ToUnixNanos(retention_.now - age);
  }

  absl::Status FindCurrent() {
    for (const v1::Dependencies& today : retention_.current) {
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

  // One scan that sorts nothing: what it takes of memory is a few words for each problem and its dependencies.
  absl::Status AddTrials(int64_t latest, std::vector<Unit>& units) {
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
      units.push_back({last, Unit::kTrials, group.first, group.second});
    }
    return absl::OkStatus();
  }

  // All that was not used within the grace, least recently used first.
  absl::StatusOr<std::vector<Unit>> Units() {
    std::vector<Unit> units;
    const int64_t latest = absl::ToUnixNanos(retention_.now - retention_.grace);
    Statement jobs(
        reader_,
        "SELECT end_ns, id FROM jobs WHERE done = 1 AND end_ns < ? AND name NOT IN (SELECT job FROM incumbents"
        " UNION SELECT trials.job FROM incumbents JOIN trials ON trials.id = incumbents.trial_id)"
        // A job takes its parts' results when it gets to it.
        " AND (parent IS NULL OR parent NOT IN (SELECT name FROM jobs WHERE done = 0))");
    jobs.Bind(latest);
    for (;;) {
      absl::StatusOr<bool> row = jobs.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      units.push_back({jobs.Int(0), Unit::kJob, jobs.Int(1)});
    }
    std::vector<std::string> toolchains;
    for (const v1::Dependencies& today : retention_.current) toolchains.push_back(today.toolchain());
    Statement compiles(reader_, "SELECT put_ns, rowid, toolchain FROM artifacts WHERE sha256 = '' AND put_ns < ?");
    compiles.Bind(latest);
    for (;;) {
      absl::StatusOr<bool> row = compiles.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      if (std::find(toolchains.begin(), toolchains.end(), compiles.Text(2)) != toolchains.end()) continue;
      units.push_back({compiles.Int(0), Unit::kCompile, compiles.Int(1)});
    }
    Statement retimings(reader_, "SELECT finish_ns, id FROM retimings WHERE finish_ns < ?");
    retimings.Bind(latest);
    for (;;) {
      absl::StatusOr<bool> row = retimings.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      units.push_back({retimings.Int(0), Unit::kRetiming, retimings.Int(1)});
    }
    if (absl::Status status = AddTrials(latest, units); !status.ok()) return status;
    std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.used_ns < b.used_ns; });
    return units;
  }

  absl::Status RemoveOld(std::vector<Unit>& units) {
    const int64_t before[] = {Before(retention_.job_age), Before(retention_.artifact_age), Before(retention_.trial_age),
                              Before(retention_.retiming_age)};
    std::vector<Unit> old;
    const auto is_old = [&before](const Unit& unit) { return unit.used_ns < before[unit.kind]; };
    std::copy_if(units.begin(), units.end(), std::back_inserter(old), is_old);
    std::erase_if(units, is_old);
    for (size_t at = 0; at < old.size() && !stopped_();) {
      if (absl::Status status = RemoveSome(old, at); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status RemoveForSize(const std::vector<Unit>& units) {
    if (retention_.database_bytes == 0) return absl::OkStatus();
    absl::StatusOr<int64_t> bytes = UsedBytes();
    if (!bytes.ok()) return bytes.status();
    if (*bytes <= Begin(retention_.database_bytes)) return absl::OkStatus();
    target_ = Target(retention_.database_bytes);
    for (size_t at = 0; at < units.size() && *bytes > *target_ && !stopped_();) {
      if (absl::Status status = RemoveSome(units, at); !status.ok()) return status;
      bytes = UsedBytes();
      if (!bytes.ok()) return bytes.status();
    }
    return absl::OkStatus();
  }

  // Removes the unit at `at`, or a batch of them where each is one row; moves `at` behind them.
  absl::Status RemoveSome(const std::vector<Unit>& units, size_t& at) {
    const Unit first = units[at];
    if (first.kind == Unit::kTrials) {
      ++at;
      return RemoveTrials(first.id, first.dependencies);
    }
    std::vector<int64_t> ids;
    for (; at < units.size() && units[at].kind == first.kind && ids.size() < kRowsABatch; ++at)
      ids.push_back(units[at].id);
    const absl::StatusOr<int64_t> removed = writer_.WriteAndReturn<int64_t>([&](Connection& connection) {
      return Delete(connection, absl::StrCat(RowsOf(first.kind), " IN (SELECT value FROM json_each(?))"), ids);
    });
    if (!removed.ok()) return removed.status();
    CountOf(first.kind) += *removed;
    return absl::OkStatus();
  }

  static absl::string_view RowsOf(Unit::Kind kind) {
    switch (kind) {
      case Unit::kJob:
        return "DELETE FROM jobs WHERE done = 1 AND id";
      case Unit::kCompile:
        return "DELETE FROM artifacts WHERE sha256 = '' AND rowid";
      default:
        return "DELETE FROM retimings WHERE id";
    }
  }
  int64_t& CountOf(Unit::Kind kind) {
    switch (kind) {
      case Unit::kJob:
        return retained_.removed_jobs;
      case Unit::kCompile:
        return retained_.removed_compiles;
      default:
        return retained_.removed_retimings;
    }
  }

  // Over and over, because a trial may go once the older ones of its key have.
  absl::Status RemoveTrials(int64_t problem, int64_t dependencies) {
    const bool is_current = std::find(current_.begin(), current_.end(), dependencies) != current_.end();
    for (int64_t removed = 1; removed > 0;) {
      removed = 0;
      for (int64_t after = 0; !stopped_();) {
        absl::StatusOr<std::vector<int64_t>> ids = Candidates(reader_, problem, dependencies, is_current, after);
        if (!ids.ok()) return ids.status();
        if (ids->empty()) break;
        after = ids->back();
        const absl::StatusOr<int64_t> gone = writer_.WriteAndReturn<int64_t>(
            [&](Connection& connection) { return DeleteTrials(connection, problem, dependencies, is_current, *ids); });
        if (!gone.ok()) return gone.status();
        removed += *gone;
        retained_.removed_trials += *gone;
        if (absl::StatusOr<bool> enough = Enough(); !enough.ok() || *enough) return enough.status();
      }
    }
    return absl::OkStatus();
  }

  // Where it is the size that things go for, it is small enough.
  absl::StatusOr<bool> Enough() {
    if (!target_.has_value()) return false;
    absl::StatusOr<int64_t> bytes = UsedBytes();
    if (!bytes.ok()) return bytes.status();
    return *bytes <= *target_;
  }

  static absl::StatusOr<std::vector<int64_t>> Candidates(Connection& connection, int64_t problem, int64_t dependencies,
                                                         bool is_current, int64_t after) {
    absl::StatusOr<std::vector<int64_t>> fastest = FastestServed(connection, problem);
    if (!fastest.ok()) return fastest.status();
    Statement select(connection,
                     absl::StrCat("SELECT id", kMayGo, ButTodaysBadVerdicts(), " AND id > ?5 ORDER BY id LIMIT ?6"));
    select.Bind(problem, dependencies, is_current ? 1 : 0, List(*fastest), after, kRowsABatch);
    return Ids(select);
  }

  // Of `ids` those that may still go: since they were read, one may have become an incumbent's.
  static absl::StatusOr<int64_t> DeleteTrials(Connection& connection, int64_t problem, int64_t dependencies,
                                              bool is_current, const std::vector<int64_t>& ids) {
    absl::StatusOr<std::vector<int64_t>> fastest = FastestServed(connection, problem);
    if (!fastest.ok()) return fastest.status();
    Statement select(connection, absl::StrCat("SELECT id", kMayGo, ButTodaysBadVerdicts(),
                                              " AND id IN (SELECT value FROM json_each(?5))"));
    select.Bind(problem, dependencies, is_current ? 1 : 0, List(*fastest), List(ids));
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

  absl::StatusOr<int64_t> UsedBytes() {
    const absl::StatusOr<int64_t> pages = Pragma("page_count");
    if (!pages.ok()) return pages;
    const absl::StatusOr<int64_t> free = Pragma("freelist_count");
    if (!free.ok()) return free;
    const absl::StatusOr<int64_t> size = Pragma("page_size");
    if (!size.ok()) return size;
    return (*pages - *free) * *size;
  }

  Connection& reader_;
  Writer& writer_;
  const Retention& retention_;
  const std::function<bool()>& stopped_;
  Retained& retained_;
  std::vector<int64_t> current_;   // ids of today's dependencies
  std::optional<int64_t> target_;  // bytes; set while it is the size that things go for
};

}  // namespace

absl::Status KeepUses(Writer& writer, TrialUses& uses) {
  const std::vector<TrialUse> noted = uses.Take();
  for (size_t begin = 0; begin < noted.size(); begin += kRowsABatch) {
    const size_t end = std::min(noted.size(), begin + kRowsABatch);
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
  return Pass(**reader, writer, retention, stopped, retained).Run();
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
