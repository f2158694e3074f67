// Retimings, baselines, submissions and compiled artifacts. What each function promises is said in store.h; what writes
// is called in a transaction.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_RECORDED_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_RECORDED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/job_writes.h"
#include "server/store/store.h"

namespace attune::store::postgresql {

absl::StatusOr<std::string> AppendRetiming(Connection& connection, const v1::Retiming& retiming, const JobWrite& write,
                                           MadeRow& made);
absl::StatusOr<Page<v1::Retiming>> ListRetimings(Connection& connection, const RetimingFilter& filter, int page_size,
                                                 absl::string_view page_token);

absl::StatusOr<v1::Baseline> RecordBaseline(Connection& connection, const v1::Baseline& baseline, MadeRow& made);
absl::StatusOr<Page<v1::Baseline>> ListBaselines(Connection& connection, absl::string_view problem_text,
                                                 absl::string_view device_id, int page_size,
                                                 absl::string_view page_token);
// In one statement.
absl::StatusOr<std::vector<v1::Baseline>> BaselinesOf(Connection& connection,
                                                      const std::vector<std::string>& problem_texts);

absl::StatusOr<v1::Submission> RecordSubmission(Connection& connection, const v1::Submission& submission,
                                                const JobWrite& write, MadeRow& made);
absl::StatusOr<v1::Submission> GetSubmission(Connection& connection, absl::string_view name);
absl::StatusOr<Page<v1::Submission>> ListSubmissions(Connection& connection, const SubmissionFilter& filter,
                                                     int page_size, absl::string_view page_token);
absl::StatusOr<v1::Submission> MoveSubmission(Connection& connection, absl::string_view name,
                                              const SubmissionMove& move);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_RECORDED_H_
