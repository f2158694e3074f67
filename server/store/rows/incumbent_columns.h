// An incumbent as columns and messages, and back; its trial is beside it. `Row` as in trial_columns.h.
#ifndef ATTUNE_SERVER_STORE_ROWS_INCUMBENT_COLUMNS_H_
#define ATTUNE_SERVER_STORE_ROWS_INCUMBENT_COLUMNS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "attune/v1/trial.pb.h"
#include "server/store/checks.h"
#include "server/store/damaged_rows.h"
#include "server/store/rows/names.h"

namespace attune::store {

// The message of what has no column of its own: the one called ties.
std::string BesideOf(const v1::Incumbent& incumbent);
inline std::string IncumbentName(int64_t id) { return absl::StrCat(kIncumbents, id); }

// What ReadIncumbent reads, in this order.
inline constexpr absl::string_view kIncumbentColumns =
    " incumbents.id, incumbents.trial_id, incumbents.promote_ns, incumbents.job, incumbents.previous_id,"
    " incumbents.why, incumbents.rolled_back_why, incumbents.ties, incumbents.timing, incumbents.pinned ";

// `first`: the column of the id.
template <typename Row>
absl::StatusOr<v1::Incumbent> ReadIncumbent(const Row& row, int first, v1::Trial trial) {
  v1::Incumbent incumbent;
  if (absl::Status status = Parse(row.Bytes(first + 7), "ties", incumbent); !status.ok()) return status;
  incumbent.set_name(IncumbentName(row.Int(first)));
  if (trial.has_problem()) *incumbent.mutable_problem() = trial.problem();
  incumbent.set_problem_text(trial.problem_text());
  incumbent.set_device_id(trial.device_id());
  incumbent.set_device_class(ClassOf(trial));
  incumbent.set_policy(trial.policy());
  *incumbent.mutable_trial() = std::move(trial);
  *incumbent.mutable_promote_time() = FromNanoseconds(row.Int(first + 2));
  incumbent.set_job(std::string(row.Text(first + 3)));
  if (!row.IsNull(first + 4)) incumbent.set_previous(IncumbentName(row.Int(first + 4)));
  incumbent.set_why(std::string(row.Text(first + 5)));
  if (!row.IsNull(first + 6)) {
    incumbent.set_rolled_back(true);
    const absl::string_view why = row.Text(first + 6);
    incumbent.set_why(absl::StrCat(incumbent.why(), "; rolled back", why.empty() ? "" : ": ", why));
  }
  if (!row.IsNull(first + 8)) {
    absl::Status status = Parse(row.Bytes(first + 8), "timing", *incumbent.mutable_timing());
    if (!status.ok()) return status;
  }
  incumbent.set_pinned(row.Int(first + 9) != 0);
  return incumbent;
}

// Aborted unless `served`, the name of the incumbent now served, is the one that a promotion expects.
absl::Status CheckExpected(absl::string_view served, absl::string_view expected, const v1::Trial& trial);

// Which incumbent a rollback of `served` serves again, of those `before` it, newest first; otherwise why it does
// nothing. `to` and `whose` as in checks.h; `read` reads an incumbent by its id.
absl::StatusOr<int64_t> WhereToGoBack(int64_t served, const std::vector<int64_t>& before, absl::string_view to,
                                      absl::string_view whose,
                                      absl::FunctionRef<absl::StatusOr<v1::Incumbent>(int64_t)> read);

absl::Status NothingToRollBack(absl::string_view whose);
absl::Status NoIncumbent(absl::string_view whose);
absl::Status NoReadableIncumbent(absl::string_view whose);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_ROWS_INCUMBENT_COLUMNS_H_
