// What every implementation of Store holds submissions to.
#ifndef ATTUNE_SERVER_STORE_SUBMISSION_RULES_H_
#define ATTUNE_SERVER_STORE_SUBMISSION_RULES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attune/v1/submission.pb.h"
#include "server/store/store.h"

namespace attune::store {

// What a stored submission cannot be without.
absl::Status CheckSubmission(const v1::Submission& submission);
// Whether it may be moved so from its state.
absl::Status CheckMove(const v1::Submission& submission, const SubmissionMove& move);
absl::Status NoSubmission(absl::string_view name);
// Tells the listing of a filter from others.
std::string NameOf(const SubmissionFilter& filter);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_SUBMISSION_RULES_H_
