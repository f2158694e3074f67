// Trials that did not end OK, made as if they had never been, so that the next job of their problems tries them again.
#ifndef ATTUNE_SERVER_JOBS_RETRY_TRIALS_H_
#define ATTUNE_SERVER_JOBS_RETRY_TRIALS_H_

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/jobs/job.h"

namespace attune::jobs {

// The trials that `filter` names. Where one failed to compile, its code is compiled again too, for every problem that
// shares it. `devices`: of this host; codes for others stay as they are.
absl::StatusOr<v1::RetryTrialsResponse> RetryTrials(const Workshop& shop, const std::vector<v1::Device>& devices,
                                                    const v1::TrialFilter& filter);

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_RETRY_TRIALS_H_
