// Retimings and baselines.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/checks.h"
#include "server/store/postgresql/results/interned.h"
#include "server/store/postgresql/results/recorded.h"
#include "server/store/postgresql/sql.h"
#include "server/store/read_page.h"
#include "server/store/rows/result_columns.h"

namespace attune::store::postgresql {
namespace {

absl::StatusOr<int64_t> MadeId(const absl::StatusOr<std::optional<int64_t>>& id) {
  if (!id.ok()) return id.status();
  if (!id->has_value()) return absl::InternalError("a new row has no number");
  return **id;
}

absl::StatusOr<int64_t> InsertRetiming(Connection& connection, const v1::Retiming& retiming) {
  const absl::StatusOr<int64_t> problem = InternProblem(connection, retiming.problem_text());
  if (!problem.ok()) return problem;
  const absl::StatusOr<CardIds> card = InternCard(connection, retiming.device_id(), retiming.device_uuid());
  if (!card.ok()) return card.status();
  const absl::StatusOr<int64_t> device_class = InternClass(connection, retiming.dependencies().device_fingerprint());
  if (!device_class.ok()) return device_class;
  const std::string message = BodyOf(retiming);
  return MadeId(Sql("INSERT INTO retimings (problem_id, device_id, uuid_id, class_id, policy, finish_ns, message)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                    *problem, card->device, card->uuid, *device_class, retiming.policy(),
                    ToNanoseconds(retiming.has_finish_time() ? retiming.finish_time() : Now()), Blob{message})
                    .FindInt(connection));
}

absl::StatusOr<int64_t> InsertBaseline(Connection& connection, const v1::Baseline& baseline) {
  const absl::StatusOr<int64_t> problem = InternProblem(connection, baseline.problem_text());
  if (!problem.ok()) return problem;
  const absl::StatusOr<int64_t> device = InternDevice(connection, baseline.device_id());
  if (!device.ok()) return device;
  const std::string message = baseline.SerializeAsString();
  return MadeId(Sql("INSERT INTO baselines (problem_id, device_id, policy, contender, message)"
                    " VALUES (?, ?, ?, ?, ?) RETURNING id",
                    *problem, *device, baseline.policy(), baseline.contender(), Blob{message})
                    .FindInt(connection));
}

// Of `listed`.
constexpr absl::string_view kIsNewest =
    "NOT EXISTS (SELECT 1 FROM baselines AS newer WHERE newer.problem_id = listed.problem_id"
    " AND newer.device_id = listed.device_id AND newer.policy = listed.policy"
    " AND newer.contender = listed.contender AND newer.id > listed.id)";

absl::StatusOr<v1::Baseline> ReadBaseline(const Rows& row) {
  v1::Baseline baseline;
  if (absl::Status status = Parse(row.Bytes(1), "baseline", baseline); !status.ok()) return status;
  return baseline;
}

}  // namespace

absl::StatusOr<std::string> AppendRetiming(Connection& connection, const v1::Retiming& retiming, const JobWrite& write,
                                           MadeRow& made) {
  if (absl::Status status = CheckRetiming(retiming); !status.ok()) return status;
  const absl::StatusOr<int64_t> id =
      Once(connection, write, made, [&] { return InsertRetiming(connection, retiming); });
  if (!id.ok()) return id.status();
  return absl::StrCat(kRetimings, *id);
}

absl::StatusOr<Page<v1::Retiming>> ListRetimings(Connection& connection, const RetimingFilter& filter, int page_size,
                                                 absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const int size = PageSize(page_size);
  Sql sql(absl::StrCat("SELECT", kRetimingColumns,
                       "FROM retimings JOIN problems ON problems.id = problem_id"
                       " JOIN devices ON devices.id = device_id JOIN device_classes ON device_classes.id = class_id"
                       " LEFT JOIN devices AS uuids ON uuids.id = uuid_id WHERE true"));
  if (after->has_value()) sql.Add(" AND retimings.id < ?", (*after)->id);
  if (!filter.problem_text.empty()) {
    sql.Add(" AND problem_id = (SELECT id FROM problems WHERE text = ?)", filter.problem_text);
  }
  if (!filter.device_class.empty()) sql.Add(" AND device_classes.fingerprint = ?", filter.device_class);
  if (!filter.device_id.empty()) sql.Add(" AND devices.name = ?", filter.device_id);
  if (!filter.device_uuid.empty()) sql.Add(" AND uuids.name = ?", filter.device_uuid);
  if (filter.policy.has_value()) sql.Add(" AND policy = ?", *filter.policy);
  if (filter.begin != absl::InfinitePast()) sql.Add(" AND finish_ns >= ?", absl::ToUnixNanos(filter.begin));
  if (filter.end != absl::InfiniteFuture()) sql.Add(" AND finish_ns < ?", absl::ToUnixNanos(filter.end));
  sql.Add(" ORDER BY retimings.id DESC LIMIT ?", size + 1);
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  return ReadPage<v1::Retiming>(*rows, "retimings", listing, size, ReadRetiming<Rows>,
                                [](const Rows& row) { return PageKey{.id = row.Int(0)}; });
}

absl::StatusOr<v1::Baseline> RecordBaseline(Connection& connection, const v1::Baseline& baseline, MadeRow& made) {
  if (absl::Status status = CheckBaseline(baseline); !status.ok()) return status;
  v1::Baseline recorded = baseline;
  if (!recorded.has_record_time()) *recorded.mutable_record_time() = Now();
  const absl::StatusOr<int64_t> id = Once(connection, {}, made, [&] { return InsertBaseline(connection, recorded); });
  if (!id.ok()) return id.status();
  return recorded;
}

absl::StatusOr<Page<v1::Baseline>> ListBaselines(Connection& connection, absl::string_view problem_text,
                                                 absl::string_view device_id, int page_size,
                                                 absl::string_view page_token) {
  const std::string listing = NameOfBaselines(problem_text, device_id);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const int size = PageSize(page_size);
  Sql sql("SELECT id, message FROM baselines AS listed WHERE true");
  if (after->has_value()) sql.Add(" AND id < ?", (*after)->id);
  if (!problem_text.empty()) sql.Add(" AND problem_id = (SELECT id FROM problems WHERE text = ?)", problem_text);
  if (!device_id.empty()) sql.Add(" AND device_id = (SELECT id FROM devices WHERE name = ?)", device_id);
  sql.Add(absl::StrCat(" AND ", kIsNewest, " ORDER BY id DESC LIMIT ?"), size + 1);
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  return ReadPage<v1::Baseline>(*rows, "baselines", listing, size, ReadBaseline,
                                [](const Rows& row) { return PageKey{.id = row.Int(0)}; });
}

absl::StatusOr<std::vector<v1::Baseline>> BaselinesOf(Connection& connection,
                                                      const std::vector<std::string>& problem_texts) {
  absl::StatusOr<Rows> rows =
      Sql(absl::StrCat("SELECT newest.id, newest.message FROM problems CROSS JOIN LATERAL"
                       " (SELECT id, message FROM baselines AS listed WHERE problem_id = problems.id AND ",
                       kIsNewest,
                       " ORDER BY id DESC LIMIT ?) AS newest WHERE problems.text = ANY (?::text::text[])"
                       " ORDER BY newest.id DESC"),
          kMostPageSize, ArrayOf(problem_texts))
          .Query(connection);
  if (!rows.ok()) return rows.status();
  std::vector<v1::Baseline> baselines;
  while (*rows->Step()) {
    absl::StatusOr<v1::Baseline> baseline = ReadBaseline(*rows);
    if (baseline.ok()) {
      baselines.push_back(*std::move(baseline));
    } else if (!SkipDamaged(baseline.status(), "baselines", rows->Int(0))) {
      return baseline.status();
    }
  }
  return baselines;
}

}  // namespace attune::store::postgresql
