#include "server/store/sqlite/incumbents.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/store/checks.h"
#include "server/store/read_page.h"
#include "server/store/rows/incumbent_columns.h"
#include "server/store/sqlite/job_writes.h"
#include "server/store/sqlite/names.h"
#include "server/store/sqlite/trials.h"

namespace attune::store::sqlite {
namespace {

constexpr absl::string_view kOfProblem =
    "problem_id = (SELECT id FROM problems WHERE text = ?)"
    " AND class_id = (SELECT id FROM device_classes WHERE fingerprint = ?) AND policy = ?";

std::string SelectIncumbents(absl::string_view where) {
  return absl::StrCat("SELECT", kIncumbentColumns, "FROM incumbents WHERE ", where);
}

// The current row of a SelectIncumbents, its trial read beside it.
absl::StatusOr<v1::Incumbent> ReadRow(Connection& connection, const Statement& row) {
  absl::StatusOr<v1::Trial> trial = GetTrial(connection, absl::StrCat(kTrials, row.Int(1)));
  if (!trial.ok()) return trial.status();
  return ReadIncumbent(row, 0, *std::move(trial));
}

absl::StatusOr<v1::Incumbent> ById(Connection& connection, int64_t id) {
  Statement select(connection, SelectIncumbents("id = ?"));
  absl::StatusOr<bool> row = select.Bind(id).Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::NotFoundError(absl::StrCat(IncumbentName(id), " does not exist"));
  return ReadRow(connection, select);
}

absl::StatusOr<std::optional<int64_t>> ServedId(Connection& connection, absl::string_view problem_text,
                                                absl::string_view device_class, v1::Policy policy) {
  return Statement(connection, absl::StrCat("SELECT id FROM incumbents WHERE served = 1 AND ", kOfProblem))
      .Bind(problem_text, device_class, policy)
      .FindInt();
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
  return Statement(connection, "UPDATE incumbents SET served = ? WHERE id = ?").Bind(served ? 1 : 0, id).Run();
}

absl::StatusOr<int64_t> Insert(Connection& connection, const v1::Incumbent& incumbent, const v1::Trial& trial,
                               std::optional<int64_t> previous) {
  absl::StatusOr<int64_t> problem = InternProblem(connection, trial.problem_text());
  if (!problem.ok()) return problem;
  absl::StatusOr<int64_t> device = InternDevice(connection, trial.device_id());
  if (!device.ok()) return device;
  absl::StatusOr<int64_t> device_class = InternClass(connection, ClassOf(trial));
  if (!device_class.ok()) return device_class;
  const std::string message = BesideOf(incumbent);
  const std::string timing = incumbent.timing().SerializeAsString();
  std::optional<Blob> measured;
  if (incumbent.has_timing()) measured = Blob{timing};
  absl::Status status =
      Statement(connection,
                "INSERT INTO incumbents (problem_id, device_id, policy, trial_id, promote_ns, job, previous_id, why,"
                " served, ties, timing, pinned, class_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)")
          .Bind(*problem, *device, trial.policy(), IdOf(kTrials, trial.name()),
                ToNanoseconds(incumbent.has_promote_time() ? incumbent.promote_time() : Now()), incumbent.job(),
                previous, incumbent.why(), Blob{message}, measured, incumbent.pinned() ? 1 : 0, *device_class)
          .Run();
  if (!status.ok()) return status;
  return connection.LastInsertId();
}

// The id of the one made.
absl::StatusOr<int64_t> MakeServed(Connection& connection, const v1::Incumbent& incumbent,
                                   absl::string_view expected_previous) {
  absl::StatusOr<v1::Trial> trial = GetTrial(connection, incumbent.trial().name());
  if (!trial.ok()) return trial.status();
  if (absl::Status status = CheckIncumbent(incumbent, *trial); !status.ok()) return status;
  absl::StatusOr<std::optional<int64_t>> served =
      ServedId(connection, trial->problem_text(), ClassOf(*trial), trial->policy());
  if (!served.ok()) return served.status();
  absl::StatusOr<std::string> readable = ReadableName(connection, *served);
  if (!readable.ok()) return readable.status();
  if (absl::Status status = CheckExpected(*readable, expected_previous, *trial); !status.ok()) return status;
  if (served->has_value()) {
    if (absl::Status status = SetServed(connection, **served, false); !status.ok()) return status;
  }
  return Insert(connection, incumbent, *trial, *served);
}

}  // namespace

absl::StatusOr<v1::Incumbent> Promote(Connection& connection, const v1::Incumbent& incumbent,
                                      absl::string_view expected_previous, const JobWrite& write) {
  const absl::StatusOr<int64_t> id =
      Once(connection, write, [&] { return MakeServed(connection, incumbent, expected_previous); });
  if (!id.ok()) return id.status();
  return ById(connection, *id);
}

namespace {

// Those served before `id`, newest first.
absl::StatusOr<std::vector<int64_t>> AllBefore(Connection& connection, int64_t id) {
  std::vector<int64_t> before;
  while (true) {
    const absl::StatusOr<std::optional<int64_t>> previous =
        Statement(connection, "SELECT previous_id FROM incumbents WHERE id = ? AND previous_id IS NOT NULL")
            .Bind(before.empty() ? id : before.back())
            .FindInt();
    if (!previous.ok()) return previous.status();
    if (!previous->has_value()) return before;
    before.push_back(**previous);
  }
}

}  // namespace

absl::StatusOr<v1::Incumbent> RollBack(Connection& connection, absl::string_view problem_text,
                                       absl::string_view device_class, v1::Policy policy, absl::string_view why,
                                       absl::string_view to) {
  absl::StatusOr<std::optional<int64_t>> served = ServedId(connection, problem_text, device_class, policy);
  if (!served.ok()) return served.status();
  const std::string whose = WordsOf(problem_text, device_class, policy);
  if (!served->has_value()) return NothingToRollBack(whose);
  const absl::StatusOr<std::vector<int64_t>> before = AllBefore(connection, **served);
  if (!before.ok()) return before.status();
  const absl::StatusOr<int64_t> target =
      WhereToGoBack(**served, *before, to, whose, [&](int64_t id) { return ById(connection, id); });
  if (!target.ok()) return target.status();
  std::vector<int64_t> passed(before->begin(), std::find(before->begin(), before->end(), *target));
  passed.push_back(**served);
  for (const int64_t id : passed) {
    absl::Status status =
        Statement(connection, "UPDATE incumbents SET served = 0, rolled_back_why = ? WHERE id = ?").Bind(why, id).Run();
    if (!status.ok()) return status;
  }
  if (absl::Status status = SetServed(connection, *target, true); !status.ok()) return status;
  return ById(connection, *target);
}

absl::StatusOr<v1::Incumbent> Unpin(Connection& connection, absl::string_view problem_text,
                                    absl::string_view device_class, v1::Policy policy) {
  absl::Status status =
      Statement(connection, absl::StrCat("UPDATE incumbents SET pinned = 0 WHERE served = 1 AND ", kOfProblem))
          .Bind(problem_text, device_class, policy)
          .Run();
  if (!status.ok()) return status;
  return GetIncumbent(connection, problem_text, device_class, policy);
}

absl::StatusOr<v1::Incumbent> GetIncumbent(Connection& connection, absl::string_view problem_text,
                                           absl::string_view device_class, v1::Policy policy) {
  Statement select(connection, SelectIncumbents(absl::StrCat("served = 1 AND ", kOfProblem)));
  absl::StatusOr<bool> row = select.Bind(problem_text, device_class, policy).Step();
  if (!row.ok()) return row.status();
  const std::string whose = WordsOf(problem_text, device_class, policy);
  if (!*row) return NoIncumbent(whose);
  absl::StatusOr<v1::Incumbent> incumbent = ReadRow(connection, select);
  if (IsDamagedRow(incumbent.status()) && SkipDamaged(incumbent.status(), "incumbents", select.Int(0))) {
    return NoReadableIncumbent(whose);
  }
  return incumbent;
}

absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(Connection& connection, const IncumbentFilter& filter, int page_size,
                                                   absl::string_view page_token) {
  const int policy = filter.policy.value_or(v1::POLICY_UNSPECIFIED);
  const std::string listing = NameOf(filter);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();

  std::vector<absl::string_view> conditions = {"id < ?"};
  if (!filter.problem_text.empty()) conditions.push_back("problem_id = (SELECT id FROM problems WHERE text = ?)");
  if (!filter.device_class.empty()) {
    conditions.push_back("class_id = (SELECT id FROM device_classes WHERE fingerprint = ?)");
  }
  if (!filter.device_id.empty()) conditions.push_back("device_id = (SELECT id FROM devices WHERE name = ?)");
  if (filter.policy.has_value()) conditions.push_back("policy = ?");
  if (!filter.history) conditions.push_back("served = 1");
  Statement select(connection,
                   SelectIncumbents(absl::StrCat(absl::StrJoin(conditions, " AND "), " ORDER BY id DESC LIMIT ?")));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  if (!filter.problem_text.empty()) select.Bind(filter.problem_text);
  if (!filter.device_class.empty()) select.Bind(filter.device_class);
  if (!filter.device_id.empty()) select.Bind(filter.device_id);
  if (filter.policy.has_value()) select.Bind(policy);
  const int size = PageSize(page_size);
  select.Bind(size + 1);

  return ReadPage<v1::Incumbent>(
      select, "incumbents", listing, size, [&connection](const Statement& row) { return ReadRow(connection, row); },
      [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
