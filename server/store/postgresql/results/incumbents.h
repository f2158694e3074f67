// The incumbents' table: a history. What each function promises is said in store.h; what changes it is called in a
// transaction, and goes one after the other for a problem.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_INCUMBENTS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_INCUMBENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/job_writes.h"
#include "server/store/store.h"

namespace attune::store::postgresql {

// What a rollback took out and what it serves again, kept over the tries of one call: one whose answer was lost is not
// made a second time.
struct MadeRollBack {
  int64_t from = 0;
  int64_t to = 0;
};

absl::StatusOr<v1::Incumbent> Promote(Connection& connection, const v1::Incumbent& incumbent,
                                      absl::string_view expected_previous, const JobWrite& write, MadeRow& made);
absl::StatusOr<v1::Incumbent> RollBack(Connection& connection, absl::string_view problem_text,
                                       absl::string_view device_class, v1::Policy policy, absl::string_view why,
                                       absl::string_view to, MadeRollBack& made);
absl::StatusOr<v1::Incumbent> Unpin(Connection& connection, absl::string_view problem_text,
                                    absl::string_view device_class, v1::Policy policy);
absl::StatusOr<v1::Incumbent> GetIncumbent(Connection& connection, absl::string_view problem_text,
                                           absl::string_view device_class, v1::Policy policy);
// Of the last two minutes, which no transaction lasts: what is committed late is seen all the same.
absl::StatusOr<std::vector<ServedChange>> ChangesOfServed(Connection& connection, absl::Duration back);
// In one statement.
absl::StatusOr<std::vector<v1::Incumbent>> IncumbentsOf(Connection& connection,
                                                        const std::vector<std::string>& problem_texts);
absl::StatusOr<Page<v1::Incumbent>> ListIncumbents(Connection& connection, const IncumbentFilter& filter, int page_size,
                                                   absl::string_view page_token);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_INCUMBENTS_H_
