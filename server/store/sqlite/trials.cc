#include "server/store/sqlite/trials.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/store/checks.h"
#include "server/store/read_page.h"
#include "server/store/sqlite/job_writes.h"
#include "server/store/sqlite/names.h"
#include "server/store/sqlite/reports/trial_reports.h"
#include "server/store/sqlite/trial_rows.h"

namespace attune::store::sqlite {
namespace {

// `select` is a SelectTrials with its parameters bound.
absl::StatusOr<std::optional<v1::Trial>> ReadOne(Connection& connection, Statement& select) {
  absl::StatusOr<bool> row = select.Step();
  if (!row.ok()) return row.status();
  if (!*row) return std::nullopt;
  absl::StatusOr<v1::Trial> trial = ReadTrial(select);
  if (!trial.ok()) return trial.status();
  const int64_t id = ReadTrialId(select);
  if (absl::Status status = AddRecipe(connection, id, *trial); !status.ok()) return status;
  if (absl::Status status = AddReports(connection, id, *trial); !status.ok()) return status;
  return *std::move(trial);
}

// One listing's conditions: SQL for what is filtered, in a fixed order so that Bind below agrees with it.
std::vector<std::string> Conditions(const v1::TrialFilter& filter) {
  std::vector<std::string> conditions;
  if (!filter.problem().empty()) conditions.push_back("problem_id = (SELECT id FROM problems WHERE text = ?)");
  if (!filter.device_id().empty()) conditions.push_back("device_id = (SELECT id FROM devices WHERE name = ?)");
  if (!filter.device_class().empty()) {
    conditions.push_back("dependencies_id IN (SELECT id FROM dependencies WHERE device_fingerprint = ?)");
  }
  if (!filter.device_uuid().empty()) conditions.push_back("uuid_id = (SELECT id FROM devices WHERE name = ?)");
  if (!filter.family().empty()) conditions.push_back("family_id = (SELECT id FROM families WHERE name = ?)");
  if (filter.policy() != v1::POLICY_UNSPECIFIED) conditions.push_back("policy = ?");
  if (!filter.job().empty()) conditions.push_back("job IN (SELECT ? UNION ALL SELECT name FROM jobs WHERE parent = ?)");
  if (!filter.verdicts().empty()) {
    conditions.push_back(absl::StrCat("verdict IN ", VerdictsOf(filter)));
  }
  return conditions;
}

void BindConditions(const v1::TrialFilter& filter, Statement& select) {
  if (!filter.problem().empty()) select.Bind(filter.problem());
  if (!filter.device_id().empty()) select.Bind(filter.device_id());
  if (!filter.device_class().empty()) select.Bind(filter.device_class());
  if (!filter.device_uuid().empty()) select.Bind(filter.device_uuid());
  if (!filter.family().empty()) select.Bind(filter.family());
  if (filter.policy() != v1::POLICY_UNSPECIFIED) select.Bind(filter.policy());
  if (!filter.job().empty()) select.Bind(filter.job(), filter.job());
}

std::string SelectPage(const v1::TrialFilter& filter, bool fastest, bool continued) {
  std::vector<std::string> conditions = Conditions(filter);
  if (continued) conditions.push_back(fastest ? "(rank_us, id) > (?, ?)" : "id < ?");
  // The rows of the page are chosen among narrow ones, and only then read whole.
  return SelectTrials(absl::StrCat("(SELECT id AS trial_id, rank_us FROM trials", conditions.empty() ? "" : " WHERE ",
                                   absl::StrJoin(conditions, " AND "),
                                   fastest ? " ORDER BY rank_us, id" : " ORDER BY id DESC", " LIMIT ?)"),
                      fastest ? "ORDER BY chosen.rank_us, chosen.trial_id" : "ORDER BY chosen.trial_id DESC");
}

}  // namespace

absl::StatusOr<std::string> AppendTrial(Connection& connection, const v1::Trial& trial, const JobWrite& write) {
  if (absl::Status status = CheckTrial(trial); !status.ok()) return status;
  absl::StatusOr<int64_t> id = Once(connection, write, [&] { return InsertTrial(connection, trial); });
  if (!id.ok()) return id.status();
  return absl::StrCat(kTrials, *id);
}

absl::StatusOr<v1::Trial> GetTrial(Connection& connection, absl::string_view name) {
  Statement select(connection, SelectTrials("(SELECT ? AS trial_id)", ""));
  select.Bind(IdOf(kTrials, name));
  absl::StatusOr<std::optional<v1::Trial>> trial = ReadOne(connection, select);
  if (!trial.ok()) return trial.status();
  if (!trial->has_value()) return NoTrial(name);
  return **std::move(trial);
}

absl::StatusOr<Page<v1::Trial>> ListTrials(Connection& connection, const v1::TrialFilter& filter,
                                           v1::ListTrialsRequest::Order order, int page_size,
                                           absl::string_view page_token) {
  const bool fastest = order == v1::ListTrialsRequest::ORDER_FASTEST;
  const std::string listing = NameOf(filter, order);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();

  Statement select(connection, SelectPage(filter, fastest, after->has_value()));
  BindConditions(filter, select);
  if (after->has_value() && fastest) select.Bind((*after)->rank);
  if (after->has_value()) select.Bind((*after)->id);
  const int size = PageSize(page_size);
  select.Bind(size + 1);

  return ReadPage<v1::Trial>(select, "trials", listing, size, ReadListedTrial<Statement>, [](const Statement& row) {
    return PageKey{ReadTrialId(row), ReadTrialRank(row)};
  });
}

absl::StatusOr<Retried> RetryTrials(Connection& connection, const v1::TrialFilter& filter) {
  std::vector<std::string> conditions = Conditions(filter);
  conditions.push_back("retry = 0");
  const std::string where = absl::StrCat(" WHERE ", absl::StrJoin(conditions, " AND "));
  Statement select(connection, absl::StrCat("SELECT text FROM problems WHERE id IN (SELECT problem_id FROM trials",
                                            where, ") ORDER BY text"));
  BindConditions(filter, select);
  Retried retried;
  for (;;) {
    absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    retried.problems.emplace_back(select.Text(0));
  }
  Statement update(connection, absl::StrCat("UPDATE trials SET retry = 1", where));
  BindConditions(filter, update);
  if (absl::Status status = update.Run(); !status.ok()) return status;
  retried.trials = connection.Changes();
  return retried;
}

}  // namespace attune::store::sqlite
