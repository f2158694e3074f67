// One problem of a submission: its variants compiled, checked and timed, the best played off against the base.
#ifndef ATTUNE_SERVER_SUBMIT_TRY_PROBLEM_H_
#define ATTUNE_SERVER_SUBMIT_TRY_PROBLEM_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "attune/v1/submission.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/measure/paired_rounds.h"
#include "server/space/space.h"
#include "server/submit/limits.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"
#include "server/trials/reference.h"
#include "server/trials/trial_phase.h"

namespace attune::submit {

// What a submission is compared with.
struct Base {
  std::string name;  // "incumbents/3" or "submissions/6"
  space::Variant variant;
};

struct Means {
  const trials::Families& families;  // those of the references
  const trials::TrialPhase::Means& trials;
  TimeLimits times;
};

// What has come of a problem.
struct Tried {
  v1::SubmitResult::Row row;          // with everything but what Decide fills in
  std::optional<measure::Gain> gain;  // over the base, where they played off
};

// What is not right in the play-off, or in the many runs of a winner, is not right here either. Trials are recorded
// under the submission's own family, which no other search knows. Cancelled when the job was asked to stop, Unavailable
// when the infrastructure lost what was tried.
absl::StatusOr<Tried> TryProblem(const std::shared_ptr<const space::Family>& family,
                                 const catalog::TuningKey& tuning_key, const std::optional<Base>& base,
                                 const Means& means, trials::DeviceSlot& slot, const trials::Job& job);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_TRY_PROBLEM_H_
