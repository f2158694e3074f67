// The submissions' tables. What each function promises is said in store.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_SUBMITTED_SUBMISSIONS_H_
#define ATTUNE_SERVER_STORE_SQLITE_SUBMITTED_SUBMISSIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

absl::StatusOr<v1::Submission> RecordSubmission(Connection& connection, const v1::Submission& submission,
                                                const JobWrite& write);
absl::StatusOr<v1::Submission> GetSubmission(Connection& connection, absl::string_view name);
absl::StatusOr<Page<v1::Submission>> ListSubmissions(Connection& connection, const SubmissionFilter& filter,
                                                     int page_size, absl::string_view page_token);
absl::StatusOr<v1::Submission> MoveSubmission(Connection& connection, absl::string_view name,
                                              const SubmissionMove& move);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_SUBMITTED_SUBMISSIONS_H_
