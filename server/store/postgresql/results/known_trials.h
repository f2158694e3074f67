// What is known of variants on a card: its own trials, the verdicts of its class, the times of the class's other cards.
// What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KNOWN_TRIALS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KNOWN_TRIALS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/postgresql/connection.h"
#include "server/store/store.h"

namespace attune::store::postgresql {

absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const TrialKey& key);
absl::StatusOr<std::vector<v1::Trial>> KnownTrials(Connection& connection, absl::string_view problem_text,
                                                   const Instance& device, v1::Policy policy,
                                                   const v1::Dependencies& dependencies);
absl::StatusOr<std::vector<v1::Trial>> PriorTrials(Connection& connection, absl::string_view problem_text,
                                                   const Instance& device, v1::Policy policy,
                                                   const v1::Dependencies& dependencies, int most);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KNOWN_TRIALS_H_
