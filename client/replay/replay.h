// Runs a strategy on a recorded space: what it tries, told what was recorded.
#ifndef ATTUNE_CLIENT_REPLAY_REPLAY_H_
#define ATTUNE_CLIENT_REPLAY_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/replay/recorded_space.h"
#include "server/search/strategy.h"

namespace attune::replay {

// The candidates in the order in which they were tried, each once. The code of what is speculated about is ready at
// once, so that the same strategy, seed and space give the same every time. Ends after `most_trials`, or with one of
// `enough_us` or less.
std::vector<size_t> Replay(search::Strategy& strategy, const RecordedSpace& space, size_t most_trials,
                           double enough_us = 0);

// How a strategy is told of an outcome.
attune::v1::Trial TrialOf(const search::Outcome& outcome);

// Trials until one within `share` of the best; nullopt when there was none.
std::optional<size_t> TrialsToWithin(double share, const std::vector<size_t>& tried, const RecordedSpace& space);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_REPLAY_H_
