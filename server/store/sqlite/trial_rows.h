// A trial to rows and back.
#ifndef ATTUNE_SERVER_STORE_SQLITE_TRIAL_ROWS_H_
#define ATTUNE_SERVER_STORE_SQLITE_TRIAL_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/trial.pb.h"
#include "server/store/rows/trial_columns.h"
#include "server/store/sqlite/connection.h"

namespace attune::store::sqlite {

// Returns the new row's id.
absl::StatusOr<int64_t> InsertTrial(Connection& connection, const v1::Trial& trial);

// A SELECT over whole trials but for their recipes. `from` is a table expression whose rows have `trial_id`; `tail` is
// the ORDER BY. ReadTrial (trial_columns.h) reads the current row of it.
std::string SelectTrials(absl::string_view from, absl::string_view tail);

// Leaves the trial as it is when it was stored without a recipe.
absl::Status AddRecipe(Connection& connection, int64_t trial_id, v1::Trial& trial);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_TRIAL_ROWS_H_
