#include "server/store/submission_rules.h"

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune::store {

absl::Status CheckSubmission(const v1::Submission& submission) {
  absl::string_view missing;
  if (submission.content_hash().empty()) missing = "content_hash";
  if (submission.files().empty()) missing = "files";
  if (submission.family().empty()) missing = "family";
  if (submission.principal().empty()) missing = "principal";
  if (submission.operation().empty()) missing = "operation";
  if (submission.state() == v1::Submission::STATE_UNSPECIFIED) missing = "state";
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("submission: ", missing, " is not set; it must be"));
}

absl::Status CheckMove(const v1::Submission& submission, const SubmissionMove& move) {
  if (submission.state() == move.to) return absl::OkStatus();
  if (submission.state() == v1::Submission::STATE_WITHDRAWN) {
    return absl::FailedPreconditionError(
        absl::StrCat(submission.name(), " was withdrawn by ", submission.state_principal(), "; submit it again"));
  }
  if (move.to == v1::Submission::STATE_ADOPTED && submission.result().decision() != v1::SubmitResult::DECISION_KEEP) {
    return absl::FailedPreconditionError(absl::StrCat(
        submission.name(), " was not kept, and only what was kept is adopted: ", submission.result().reason()));
  }
  return absl::OkStatus();
}

absl::Status NoSubmission(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("submission ", Quoted(name), " does not exist"));
}

std::string NameOf(const SubmissionFilter& filter) {
  return absl::StrCat("submissions\n", filter.principal, "\n", filter.loop, "\n", filter.content_hash, "\n",
                      static_cast<int>(filter.state.value_or(v1::Submission::STATE_UNSPECIFIED)));
}

}  // namespace attune::store
