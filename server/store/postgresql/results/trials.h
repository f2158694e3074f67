// The trials' tables. What each function promises is said in store.h. What writes is called in a transaction.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_TRIALS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_TRIALS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/job_writes.h"
#include "server/store/postgresql/sql.h"
#include "server/store/store.h"

namespace attune::store::postgresql {

absl::StatusOr<std::string> AppendTrial(Connection& connection, const v1::Trial& trial, const JobWrite& write,
                                        MadeRow& made);
absl::StatusOr<v1::Trial> GetTrial(Connection& connection, absl::string_view name);
absl::StatusOr<Page<v1::Trial>> ListTrials(Connection& connection, const v1::TrialFilter& filter,
                                           v1::ListTrialsRequest::Order order, int page_size,
                                           absl::string_view page_token);
absl::StatusOr<Retried> RetryTrials(Connection& connection, const v1::TrialFilter& filter);

absl::Status RecordProfile(Connection& connection, absl::string_view trial, const v1::Profile& profile,
                           const JobWrite& write);
absl::Status RecordSanitizing(Connection& connection, absl::string_view trial, const v1::Sanitizing& sanitizing,
                              const JobWrite& write);

// Whole trials but for recipes and reports, by ReadTrial (trial_columns.h): begins as this does, then comes what has
// rows of `trial_id`, then kTrialsOfChosen.
inline constexpr absl::string_view kTrialsOfChosen =
    " AS chosen JOIN trials ON trials.id = chosen.trial_id JOIN problems ON problems.id = trials.problem_id"
    " JOIN devices ON devices.id = trials.device_id JOIN variants ON variants.id = trials.variant_id"
    " JOIN dependencies ON dependencies.id = trials.dependencies_id"
    " JOIN trial_bodies ON trial_bodies.trial_id = trials.id"
    " LEFT JOIN devices AS uuids ON uuids.id = trials.uuid_id ";
std::string SelectTrials();

// With recipes and reports, in columns behind kTrialColumns.
std::string SelectWholeTrials(absl::string_view more_columns = "");
inline constexpr int kWholeTrialColumnCount = 18;
absl::StatusOr<v1::Trial> ReadWholeTrial(const Rows& row);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_TRIALS_H_
