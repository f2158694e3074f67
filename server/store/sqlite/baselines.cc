#include "server/store/sqlite/baselines.h"

#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/checks.h"
#include "server/store/read_page.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {
namespace {

absl::StatusOr<v1::Baseline> ReadBaseline(const Statement& row) {
  v1::Baseline baseline;
  if (absl::Status status = Parse(row.Bytes(1), "baseline", baseline); !status.ok()) return status;
  return baseline;
}

}  // namespace

absl::StatusOr<v1::Baseline> RecordBaseline(Connection& connection, const v1::Baseline& baseline) {
  if (absl::Status status = CheckBaseline(baseline); !status.ok()) return status;
  absl::StatusOr<int64_t> problem = InternProblem(connection, baseline.problem_text());
  if (!problem.ok()) return problem.status();
  absl::StatusOr<int64_t> device = InternDevice(connection, baseline.device_id());
  if (!device.ok()) return device.status();
  v1::Baseline recorded = baseline;
  if (!recorded.has_record_time()) *recorded.mutable_record_time() = Now();
  const std::string message = recorded.SerializeAsString();
  absl::Status status =
      Statement(connection,
                "INSERT INTO baselines (problem_id, device_id, policy, contender, message) VALUES (?, ?, ?, ?, ?)")
          .Bind(*problem, *device, recorded.policy(), recorded.contender(), Blob{message})
          .Run();
  if (!status.ok()) return status;
  return recorded;
}

absl::StatusOr<Page<v1::Baseline>> ListBaselines(Connection& connection, absl::string_view problem_text,
                                                 absl::string_view device_id, int page_size,
                                                 absl::string_view page_token) {
  const std::string listing = NameOfBaselines(problem_text, device_id);
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  Statement select(
      connection,
      absl::StrCat("SELECT id, message FROM baselines AS listed WHERE id < ?",
                   problem_text.empty() ? "" : " AND problem_id = (SELECT id FROM problems WHERE text = ?)",
                   device_id.empty() ? "" : " AND device_id = (SELECT id FROM devices WHERE name = ?)",
                   " AND NOT EXISTS (SELECT 1 FROM baselines AS newer WHERE newer.problem_id = listed.problem_id"
                   " AND newer.device_id = listed.device_id AND newer.policy = listed.policy"
                   " AND newer.contender = listed.contender AND newer.id > listed.id) ORDER BY id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  if (!problem_text.empty()) select.Bind(problem_text);
  if (!device_id.empty()) select.Bind(device_id);
  const int size = PageSize(page_size);
  select.Bind(size + 1);
  return ReadPage<v1::Baseline>(select, "baselines", listing, size, ReadBaseline,
                                [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

}  // namespace attune::store::sqlite
