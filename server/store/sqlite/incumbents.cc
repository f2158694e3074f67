#include "server/store/sqlite/incumbents.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"
#include "server/store/checks.h"
#include "server/store/read_page.h"
#include "server/store/sqlite/job_writes.h"
#include "server/store/sqlite/names.h"
#include "server/store/sqlite/trials.h"

namespace attune::store::sqlite {
namespace {

constexpr absl::string_view kIncumbentColumns =
    "SELECT id, trial_id, promote_ns, job, previous_id, why, rolled_back_why, ties, timing, pinned FROM incumbents"
    " WHERE ";
constexpr absl::string_view kOfProblem =
    "problem_id = (SELECT id FROM problems WHERE text = ?)"
    " AND class_id = (SELECT id FROM device_classes WHERE fingerprint = ?) AND policy = ?";

std::string NameOf(int64_t id) { return absl::StrCat(kIncumbents, id); }

// The current row of a kIncumbentColumns statement, its trial read beside it.
absl::StatusOr<v1::Incumbent> ReadIncumbent(Connection& connection, const Statement& row) {
  v1::Incumbent incumbent;
  if (absl::Status status = Parse(row.Bytes(7), "ties", incumbent); !status.ok()) return status;
  absl::StatusOr<v1::Trial> trial = GetTrial(connection, absl::StrCat(kTrials, row.Int(1)));
  if (!trial.ok()) return trial.status();
  incumbent.set_name(NameOf(row.Int(0)));
  if (trial->has_problem()) *incumbent.mutable_problem() = trial->problem();
  incumbent.set_problem_text(trial->problem_text());
  incumbent.set_device_id(trial->device_id());
  incumbent.set_device_class(ClassOf(*trial));
  incumbent.set_policy(trial->policy());
  *incumbent.mutable_trial() = *std::move(trial);
  *incumbent.mutable_promote_time() = FromNanoseconds(row.Int(2));
  incumbent.set_job(std::string(row.Text(3)));
  if (!row.IsNull(4)) incumbent.set_previous(NameOf(row.Int(4)));
  incumbent.set_why(std::string(row.Text(5)));
  if (!row.IsNull(6)) {
    incumbent.set_rolled_back(true);
    incumbent.set_why(absl::StrCat(incumbent.why(), "; rolled back", row.Text(6).empty() ? "" : ": ", row.Text(6)));
  }
  if (!row.IsNull(8)) {
    if (absl::Status status = Parse(row.Bytes(8), "timing", *incumbent.mutable_timing()); !status.ok()) return status;
  }
  incumbent.set_pinned(row.Int(9) != 0);
  return incumbent;
}

absl::StatusOr<v1::Incumbent> ById(Connection& connection, int64_t id) {
  Statement select(connection, absl::StrCat(kIncumbentColumns, "id = ?"));
  absl::StatusOr<bool> row = select.Bind(id).Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::NotFoundError(absl::StrCat(NameOf(id), " does not exist"));
  return ReadIncumbent(connection, select);
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
  if (status.ok()) return NameOf(*served);
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
  v1::Incumbent beside;  // what has no column of its own
  *beside.mutable_ties() = incumbent.ties();
  if (incumbent.has_claim()) *beside.mutable_claim() = incumbent.claim();
  const std::string message = beside.SerializeAsString();
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
  const std::string previous = *readable;
  if (previous != expected_previous) {
    return absl::AbortedError(absl::StrCat(
        "the incumbent of ", WordsOf(trial->problem_text(), ClassOf(*trial), trial->policy()), " is ",
        previous.empty() ? "none" : previous, " by now, not ", expected_previous.empty() ? "none" : expected_previous));
  }
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

// The one before `id`; FailedPrecondition when it is the first.
absl::StatusOr<int64_t> PreviousOf(Connection& connection, int64_t id, absl::string_view whose) {
  absl::StatusOr<std::optional<int64_t>> previous =
      Statement(connection, "SELECT previous_id FROM incumbents WHERE id = ? AND previous_id IS NOT NULL")
          .Bind(id)
          .FindInt();
  if (!previous.ok()) return previous.status();
  if (previous->has_value()) return **previous;
  return absl::FailedPreconditionError(
      absl::StrCat(NameOf(id), " of ", whose, " is the first: there is none before it to go back to"));
}

// Those served before `id`, newest first.
absl::StatusOr<std::vector<int64_t>> AllBefore(Connection& connection, int64_t id, absl::string_view whose) {
  std::vector<int64_t> before;
  while (true) {
    const absl::StatusOr<int64_t> previous = PreviousOf(connection, before.empty() ? id : before.back(), whose);
    if (absl::IsFailedPrecondition(previous.status())) return before;
    if (!previous.ok()) return previous.status();
    before.push_back(*previous);
  }
}

// Whether going back from `served` to `before` would change no more than a time, or bring back a pin that was lifted.
bool ServesTheSame(Connection& connection, int64_t before, int64_t served) {
  const absl::StatusOr<v1::Incumbent> one = ById(connection, before);
  const absl::StatusOr<v1::Incumbent> other = ById(connection, served);
  return one.ok() && other.ok() && one->trial().variant().text() == other->trial().variant().text() &&
         (one->pinned() || !other->pinned());
}

// Why nothing goes back to `to`, which is none of `before`, the ones before `served`; when empty, to any of them.
absl::Status NoWayBackTo(Connection& connection, absl::string_view to, int64_t served,
                         const std::vector<int64_t>& before, absl::string_view whose) {
  std::vector<std::string> names;
  for (const int64_t id : before) names.push_back(NameOf(id));
  if (to.empty()) return NoOtherBefore(NameOf(served), names, whose);
  std::optional<v1::Incumbent> named;
  if (const std::optional<int64_t> id = IdOf(kIncumbents, to); id.has_value()) {
    absl::StatusOr<v1::Incumbent> found = ById(connection, *id);
    if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
    if (found.ok()) named = *std::move(found);
  }
  return NoWayBack(to, NameOf(served), names, named, whose);
}

}  // namespace

absl::StatusOr<v1::Incumbent> RollBack(Connection& connection, absl::string_view problem_text,
                                       absl::string_view device_class, v1::Policy policy, absl::string_view why,
                                       absl::string_view to) {
  absl::StatusOr<std::optional<int64_t>> served = ServedId(connection, problem_text, device_class, policy);
  if (!served.ok()) return served.status();
  if (!served->has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(WordsOf(problem_text, device_class, policy), " has no incumbent to roll back"));
  }
  const std::string whose = WordsOf(problem_text, device_class, policy);
  const absl::StatusOr<std::vector<int64_t>> before = AllBefore(connection, **served, whose);
  if (!before.ok()) return before.status();
  if (to.empty() && before->empty()) return PreviousOf(connection, **served, whose).status();
  const auto is_meant = [&](int64_t id) {
    return to.empty() ? !ServesTheSame(connection, id, **served) : NameOf(id) == to;
  };
  auto target = std::find_if(before->begin(), before->end(), is_meant);
  if (target == before->end()) return NoWayBackTo(connection, to, **served, *before, whose);
  std::vector<int64_t> passed(before->cbegin(), std::vector<int64_t>::const_iterator(target));
  passed.push_back(**served);
  for (const int64_t id : passed) {
    absl::Status status =
        Statement(connection, "UPDATE incumbents SET served = 0, rolled_back_why = ? WHERE id = ?").Bind(why, id).Run();
    if (!status.ok()) return status;
  }
  const int64_t id = *target;
  if (absl::Status status = SetServed(connection, id, true); !status.ok()) return status;
  return ById(connection, id);
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
  Statement select(connection, absl::StrCat(kIncumbentColumns, "served = 1 AND ", kOfProblem));
  absl::StatusOr<bool> row = select.Bind(problem_text, device_class, policy).Step();
  if (!row.ok()) return row.status();
  if (!*row) {
    return absl::NotFoundError(absl::StrCat(WordsOf(problem_text, device_class, policy), " has no incumbent"));
  }
  absl::StatusOr<v1::Incumbent> incumbent = ReadIncumbent(connection, select);
  if (IsDamagedRow(incumbent.status()) && SkipDamaged(incumbent.status(), "incumbents", select.Int(0))) {
    return absl::NotFoundError(
        absl::StrCat(WordsOf(problem_text, device_class, policy), " has no incumbent that can be read"));
  }
  return incumbent;
}

absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(Connection& connection, const IncumbentFilter& filter, int page_size,
                                                   absl::string_view page_token) {
  const int policy = filter.policy.value_or(v1::POLICY_UNSPECIFIED);
  const std::string listing = absl::StrCat("incumbents ", filter.problem_text, " ", filter.device_class, " ",
                                           filter.device_id, " ", policy, filter.history ? " history" : " served");
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
                   absl::StrCat(kIncumbentColumns, absl::StrJoin(conditions, " AND "), " ORDER BY id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  if (!filter.problem_text.empty()) select.Bind(filter.problem_text);
  if (!filter.device_class.empty()) select.Bind(filter.device_class);
  if (!filter.device_id.empty()) select.Bind(filter.device_id);
  if (filter.policy.has_value()) select.Bind(policy);
  const int size = PageSize(page_size);
  select.Bind(size + 1);

  return ReadPage<v1::Incumbent>(
      select, "incumbents", listing, size,
      [&connection](const Statement& row) { return ReadIncumbent(connection, row); },
      [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
