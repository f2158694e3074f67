// The last few, checked on fresh data and then timed in turn, round by round.
#ifndef ATTUNE_SERVER_TUNING_PLAY_OFF_H_
#define ATTUNE_SERVER_TUNING_PLAY_OFF_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "server/tuning/candidates.h"
#include "server/tuning/job.h"

namespace attune::tuning {

// One play-off of `contestants`, indices of `candidates`. Returns their `trials` in the same order with this play-off's
// verdict, detail, accuracy and timing; with recipes. One whose check failed has the verdict that says how; one that
// takes the device down in three tries is LOST. `fresh_seed` 0 leaves the check out.
absl::StatusOr<std::vector<v1::Trial>> PlayOff(JobContext& context, const Subject& subject,
                                               const CandidateSet& candidates,
                                               const std::map<size_t, v1::Trial>& trials,
                                               const std::vector<size_t>& contestants, uint64_t fresh_seed,
                                               DeviceSession& session);

}  // namespace attune::tuning

#endif  // ATTUNE_SERVER_TUNING_PLAY_OFF_H_
