// KEEP or REVERT: pure functions over what was timed.
#ifndef ATTUNE_SERVER_SUBMIT_VERDICT_H_
#define ATTUNE_SERVER_SUBMIT_VERDICT_H_

#include <optional>

#include "attune/v1/device.pb.h"
#include "attune/v1/submission.pb.h"
#include "server/measure/paired_rounds.h"

namespace attune::submit {

// Fills in speedup, gates, decision and reason of a row that has its trial and, where there is a base, its base_trial,
// both of one play-off, and the trial's gain over the base in its paired rounds. KEEP when the trial is right and
// FASTER than the base, or there is no base.
void Decide(const v1::Device& device, const std::optional<measure::Gain>& gain, v1::SubmitResult::Row& row);

// Of all rows: REVERT when one is not right, regresses, or breaks a gate that reverts; KEEP when one of the others is
// KEEP.
void DecideAll(v1::SubmitResult& result);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_VERDICT_H_
