// What tools say of trials. What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_REPORTS_TRIAL_REPORTS_H_
#define ATTUNE_SERVER_STORE_SQLITE_REPORTS_TRIAL_REPORTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

absl::Status RecordProfile(Connection& connection, absl::string_view trial, const v1::Profile& profile,
                           const JobWrite& write);
absl::Status RecordSanitizing(Connection& connection, absl::string_view trial, const v1::Sanitizing& sanitizing,
                              const JobWrite& write);

// A damaged report is left out and logged.
absl::Status AddReports(Connection& connection, int64_t trial_id, v1::Trial& trial);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_REPORTS_TRIAL_REPORTS_H_
