#include "server/store/sqlite/retimings.h"

#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/checks.h"
#include "server/store/read_page.h"
#include "server/store/rows/result_columns.h"
#include "server/store/sqlite/job_writes.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {
namespace {

absl::StatusOr<int64_t> InsertRetiming(Connection& connection, const v1::Retiming& retiming) {
  const absl::StatusOr<int64_t> problem = InternProblem(connection, retiming.problem_text());
  if (!problem.ok()) return problem;
  const absl::StatusOr<int64_t> device = InternDevice(connection, retiming.device_id());
  if (!device.ok()) return device;
  std::optional<int64_t> uuid;
  if (!retiming.device_uuid().empty()) {
    const absl::StatusOr<int64_t> id = InternDevice(connection, retiming.device_uuid());
    if (!id.ok()) return id;
    uuid = *id;
  }
  const absl::StatusOr<int64_t> device_class = InternClass(connection, retiming.dependencies().device_fingerprint());
  if (!device_class.ok()) return device_class;
  const std::string message = BodyOf(retiming);
  absl::Status status =
      Statement(connection,
                "INSERT INTO retimings (problem_id, device_id, uuid_id, class_id, policy, finish_ns, message)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)")
          .Bind(*problem, *device, uuid, *device_class, retiming.policy(),
                ToNanoseconds(retiming.has_finish_time() ? retiming.finish_time() : Now()), Blob{message})
          .Run();
  if (!status.ok()) return status;
  return connection.LastInsertId();
}

constexpr absl::string_view kJoined =
    "FROM retimings JOIN problems ON problems.id = problem_id JOIN devices ON devices.id = device_id"
    " JOIN device_classes ON device_classes.id = class_id LEFT JOIN devices AS uuids ON uuids.id = uuid_id"
    " WHERE retimings.id < ?";

// After another condition.
std::string ConditionsOf(const RetimingFilter& filter) {
  return absl::StrCat(filter.problem_text.empty() ? "" : " AND problems.text = ?",
                      filter.device_class.empty() ? "" : " AND device_classes.fingerprint = ?",
                      filter.device_id.empty() ? "" : " AND devices.name = ?",
                      filter.device_uuid.empty() ? "" : " AND uuids.name = ?",
                      filter.policy.has_value() ? " AND policy = ?" : "",
                      filter.begin == absl::InfinitePast() ? "" : " AND finish_ns >= ?",
                      filter.end == absl::InfiniteFuture() ? "" : " AND finish_ns < ?");
}

void BindFilter(const RetimingFilter& filter, Statement& select) {
  if (!filter.problem_text.empty()) select.Bind(filter.problem_text);
  if (!filter.device_class.empty()) select.Bind(filter.device_class);
  if (!filter.device_id.empty()) select.Bind(filter.device_id);
  if (!filter.device_uuid.empty()) select.Bind(filter.device_uuid);
  if (filter.policy.has_value()) select.Bind(*filter.policy);
  if (filter.begin != absl::InfinitePast()) select.Bind(absl::ToUnixNanos(filter.begin));
  if (filter.end != absl::InfiniteFuture()) select.Bind(absl::ToUnixNanos(filter.end));
}

}  // namespace

absl::StatusOr<std::string> AppendRetiming(Connection& connection, const v1::Retiming& retiming,
                                           const JobWrite& write) {
  if (absl::Status status = CheckRetiming(retiming); !status.ok()) return status;
  const absl::StatusOr<int64_t> id = Once(connection, write, [&] { return InsertRetiming(connection, retiming); });
  if (!id.ok()) return id.status();
  return absl::StrCat(kRetimings, *id);
}

absl::StatusOr<Page<v1::Retiming>> ListRetimings(Connection& connection, const RetimingFilter& filter, int page_size,
                                                 absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  Statement select(connection, absl::StrCat("SELECT", kRetimingColumns, kJoined, ConditionsOf(filter),
                                            " ORDER BY retimings.id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  BindFilter(filter, select);
  const int size = PageSize(page_size);
  select.Bind(size + 1);
  return ReadPage<v1::Retiming>(select, "retimings", listing, size, ReadRetiming<Statement>,
                                [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
