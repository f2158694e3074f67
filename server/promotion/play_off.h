// The last few, checked on fresh data and then timed in turn, round by round.
#ifndef ATTUNE_SERVER_PROMOTION_PLAY_OFF_H_
#define ATTUNE_SERVER_PROMOTION_PLAY_OFF_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/tuning_key.h"
#include "server/search/candidates.h"
#include "server/trials/code.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::promotion {

struct Contestant {
  search::Candidate candidate;
  v1::Trial trial;  // what it takes part with
};

// One play-off. Returns the contestants' trials in the same order with this play-off's verdict, detail, accuracy and
// timing; with recipes. One whose check failed has the verdict that says how, as has one that takes the device's worker
// down (supervisor/device_worker.h); one whose answer is lost otherwise is LOST. `fresh_seed` 0 leaves the check out.
absl::StatusOr<std::vector<v1::Trial>> PlayOff(const catalog::TuningKey& tuning_key,
                                               const std::vector<Contestant>& contestants, uint64_t fresh_seed,
                                               const trials::CodeSource& code, const trials::Job& job,
                                               trials::DeviceUse& use);

}  // namespace attune::promotion

#endif  // ATTUNE_SERVER_PROMOTION_PLAY_OFF_H_
