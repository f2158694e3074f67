// The trials' tables. What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_TRIALS_H_
#define ATTUNE_SERVER_STORE_SQLITE_TRIALS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

absl::StatusOr<std::string> AppendTrial(Connection& connection, const v1::Trial& trial, const JobWrite& write);
absl::StatusOr<v1::Trial> GetTrial(Connection& connection, absl::string_view name);
absl::StatusOr<Page<v1::Trial>> ListTrials(Connection& connection, const v1::TrialFilter& filter,
                                           v1::ListTrialsRequest::Order order, int page_size,
                                           absl::string_view page_token);
absl::StatusOr<Retried> RetryTrials(Connection& connection, const v1::TrialFilter& filter);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_TRIALS_H_
