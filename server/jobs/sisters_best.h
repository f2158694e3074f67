// Between the trials of a tuning on several cards and its play-off, which is on one of them: the fastest few that each
// other card has timed are tried on that one, too. So times of two cards are never compared, and what plays off, is
// promoted and is kept is what a tuning on this card alone would have found there.
#ifndef ATTUNE_SERVER_JOBS_SISTERS_BEST_H_
#define ATTUNE_SERVER_JOBS_SISTERS_BEST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/catalog/tuning_key.h"
#include "server/search/search_spec.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"
#include "server/trials/trial_phase.h"

namespace attune::jobs {

// Who is tried: of each card as many as play off, by the rules of promotion::PickContestants.
struct Few {
  size_t most = 6;
  double near = 1.10;
};

// Of the spec's cards, whose trials of `candidates` are in the store. `tuning_key` and `use` are those of the card that
// decides; what it has `tried` for this job is not tried again. `before`: what the job has cost so far on the others.
// How many were run.
absl::StatusOr<int64_t> TrySistersBest(const trials::TrialPhase::Means& means, const search::CandidateSet& candidates,
                                       const std::map<size_t, v1::Trial>& tried, const search::SearchSpec& spec,
                                       const catalog::TuningKey& tuning_key, const Few& few,
                                       const v1::OperationCost& before, const trials::Job& job, trials::DeviceUse& use);

// "; it went on without cuda:1: ..."; empty where no card was lost.
std::string LostCards(const trials::TrialPhase& phase);

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_SISTERS_BEST_H_
