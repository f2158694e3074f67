// The incumbents' history. What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_INCUMBENTS_H_
#define ATTUNE_SERVER_STORE_SQLITE_INCUMBENTS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

absl::StatusOr<v1::Incumbent> Promote(Connection& connection, const v1::Incumbent& incumbent,
                                      absl::string_view expected_previous, const JobWrite& write);
absl::StatusOr<v1::Incumbent> RollBack(Connection& connection, absl::string_view problem_text,
                                       absl::string_view device_class, v1::Policy policy, absl::string_view why,
                                       absl::string_view to);
absl::StatusOr<v1::Incumbent> Unpin(Connection& connection, absl::string_view problem_text,
                                    absl::string_view device_class, v1::Policy policy);
absl::StatusOr<v1::Incumbent> GetIncumbent(Connection& connection, absl::string_view problem_text,
                                           absl::string_view device_class, v1::Policy policy);
absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(Connection& connection, const IncumbentFilter& filter, int page_size,
                                                   absl::string_view page_token);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_INCUMBENTS_H_
