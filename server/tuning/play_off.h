// The last few, checked on fresh data and then timed in turn, round by round.
#ifndef ATTUNE_SERVER_TUNING_PLAY_OFF_H_
#define ATTUNE_SERVER_TUNING_PLAY_OFF_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/tuning/candidates.h"
#include "server/tuning/job.h"

namespace attune::tuning {

struct Contestant {
  Candidate candidate;
  v1::Trial trial;  // what it takes part with
};

// One play-off. Returns the contestants' trials in the same order with this play-off's verdict, detail, accuracy and
// timing; with recipes. One whose check failed has the verdict that says how, as has one that takes the device's worker
// down (workers.h, DeviceWorker); one whose answer is lost otherwise is LOST. `fresh_seed` 0 leaves the check out.
absl::StatusOr<std::vector<v1::Trial>> PlayOff(JobContext& context, const Subject& subject,
                                               const std::vector<Contestant>& contestants, uint64_t fresh_seed,
                                               DeviceSession& session);

}  // namespace attune::tuning

#endif  // ATTUNE_SERVER_TUNING_PLAY_OFF_H_
