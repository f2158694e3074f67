// The baselines' table. What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_BASELINES_H_
#define ATTUNE_SERVER_STORE_SQLITE_BASELINES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

absl::StatusOr<v1::Baseline> RecordBaseline(Connection& connection, const v1::Baseline& baseline);
absl::StatusOr<Page<v1::Baseline>> ListBaselines(Connection& connection, absl::string_view problem_text,
                                                 absl::string_view device_id, int page_size,
                                                 absl::string_view page_token);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_BASELINES_H_
