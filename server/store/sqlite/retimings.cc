#include "server/store/sqlite/retimings.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/checks.h"
#include "server/store/read_page.h"
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
  v1::Retiming rest = retiming;
  rest.clear_name();
  rest.clear_problem_text();
  rest.clear_device_id();
  rest.clear_device_uuid();
  rest.clear_policy();
  rest.clear_finish_time();
  rest.clear_count();
  rest.mutable_dependencies()->clear_device_fingerprint();
  const std::string message = rest.SerializeAsString();
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

constexpr absl::string_view kRetimingColumns =
    "SELECT retimings.id, problems.text, devices.name, uuids.name, device_classes.fingerprint, policy, finish_ns,"
    " message FROM retimings JOIN problems ON problems.id = problem_id JOIN devices ON devices.id = device_id"
    " JOIN device_classes ON device_classes.id = class_id LEFT JOIN devices AS uuids ON uuids.id = uuid_id"
    " WHERE retimings.id < ?";

absl::StatusOr<v1::Retiming> ReadRetiming(const Statement& row) {
  v1::Retiming retiming;
  if (absl::Status status = Parse(row.Bytes(7), "retiming", retiming); !status.ok()) return status;
  retiming.set_name(absl::StrCat(kRetimings, row.Int(0)));
  retiming.set_problem_text(std::string(row.Text(1)));
  retiming.set_device_id(std::string(row.Text(2)));
  if (!row.IsNull(3)) retiming.set_device_uuid(std::string(row.Text(3)));
  retiming.mutable_dependencies()->set_device_fingerprint(std::string(row.Text(4)));
  retiming.set_policy(static_cast<v1::Policy>(row.Int(5)));
  *retiming.mutable_finish_time() = FromNanoseconds(row.Int(6));
  retiming.set_count(1);
  return retiming;
}

// A filter's conditions, and a text that tells it from others.
struct RetimingConditions {
  std::string sql;
  std::string listing = "retimings";
};

RetimingConditions ConditionsOf(const RetimingFilter& filter) {
  RetimingConditions conditions;
  const auto add = [&conditions](bool filters, absl::string_view sql, const auto&... values) {
    absl::StrAppend(&conditions.listing, "\n");
    if (!filters) return;
    absl::StrAppend(&conditions.sql, " AND ", sql);
    absl::StrAppend(&conditions.listing, values...);
  };
  add(!filter.problem_text.empty(), "problems.text = ?", filter.problem_text);
  add(!filter.device_class.empty(), "device_classes.fingerprint = ?", filter.device_class);
  add(!filter.device_id.empty(), "devices.name = ?", filter.device_id);
  add(!filter.device_uuid.empty(), "uuids.name = ?", filter.device_uuid);
  add(filter.policy.has_value(), "policy = ?", filter.policy.value_or(v1::POLICY_UNSPECIFIED));
  add(filter.begin != absl::InfinitePast(), "finish_ns >= ?", absl::ToUnixNanos(filter.begin));
  add(filter.end != absl::InfiniteFuture(), "finish_ns < ?", absl::ToUnixNanos(filter.end));
  return conditions;
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
  const RetimingConditions conditions = ConditionsOf(filter);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(conditions.listing, page_token);
  if (!after.ok()) return after.status();
  Statement select(connection, absl::StrCat(kRetimingColumns, conditions.sql, " ORDER BY retimings.id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  BindFilter(filter, select);
  const int size = PageSize(page_size);
  select.Bind(size + 1);
  return ReadPage<v1::Retiming>(select, "retimings", conditions.listing, size, ReadRetiming,
                                [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
