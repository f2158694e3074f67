// The times of what is served. What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_RETIMINGS_H_
#define ATTUNE_SERVER_STORE_SQLITE_RETIMINGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

absl::StatusOr<std::string> AppendRetiming(Connection& connection, const v1::Retiming& retiming, const JobWrite& write);
absl::StatusOr<Page<v1::Retiming>> ListRetimings(Connection& connection, const RetimingFilter& filter, int page_size,
                                                 absl::string_view page_token);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_RETIMINGS_H_
