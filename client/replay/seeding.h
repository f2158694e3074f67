// What a daemon begins a search with because of other problems that were tuned before.
#ifndef ATTUNE_CLIENT_REPLAY_SEEDING_H_
#define ATTUNE_CLIENT_REPLAY_SEEDING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/replay/recorded_space.h"
#include "client/replay/tuned_problem.h"
#include "client/replay/warm.h"

namespace attune::replay {

// Puts before the guesses of spaces[i], that of recordings[i], what the daemon would (jobs::ProblemTuner): the fastest
// variants of the other recordings' problems, the nearest first, re-fitted, as far as they were recorded; and where
// those of the same model of device are enough, what a forecast::ClassModel of them expects to be the fastest, among
// these, and what it expects of every candidate. `only` these problems' spaces; empty: all. A recording of the same
// problem says nothing. FailedPrecondition where `families`, the server's, are of other sources than a recording;
// InvalidArgument where no device profile has its model.
absl::Status SeedFromOthers(const std::vector<v1::Recording>& recordings, TunedWhere where, const Families& families,
                            const std::vector<std::string>& only, std::vector<RecordedSpace>& spaces);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_SEEDING_H_
