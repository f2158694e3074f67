// One given variant against the incumbent: KEEP or REVERT.
//
// KEEP when it is right, its interval lies apart below the incumbent's in an interleaved play-off and it is at least 2
// % faster, when there is no incumbent, or when it is the incumbent. A KEEP is a promotion by the rules of promotion.h,
// asked for 2 %; anything else is REVERT and leaves the incumbent where it is. A pin is PINNED as soon as the variant
// is right and timed, and REVERT when it is not.
#ifndef ATTUNE_SERVER_JOBS_EVALUATE_JOB_H_
#define ATTUNE_SERVER_JOBS_EVALUATE_JOB_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/jobs/job.h"
#include "server/search/candidates.h"

namespace attune::jobs {

// The variant a request names, by `text` or by family and parameters, feasible for the subject. NotFound,
// InvalidArgument and FailedPrecondition say what is wrong with it.
absl::StatusOr<space::Variant> RequestedVariant(const v1::Variant& variant, const search::Subject& subject,
                                                const std::vector<std::shared_ptr<const space::Family>>& families);

// Cancelled when the operation was asked to stop. `pin`: to serve the variant, and why.
absl::StatusOr<v1::EvaluateResult> EvaluateVariant(JobContext& context, const search::Subject& subject,
                                                   const space::Variant& variant,
                                                   const std::optional<std::string>& pin);

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_EVALUATE_JOB_H_
