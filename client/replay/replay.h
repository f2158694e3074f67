// Runs a strategy on a recorded space: what it tries, told what was recorded, on a clock of its own.
#ifndef ATTUNE_CLIENT_REPLAY_REPLAY_H_
#define ATTUNE_CLIENT_REPLAY_REPLAY_H_

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "client/replay/recorded_space.h"
#include "server/search/strategy.h"

namespace attune::replay {

struct Host {
  int compilers = 0;    // codes compiled at once, which take what was recorded; 0: all code is there from the start
  double trial_ms = 0;  // the device's work of a trial
  double think_ms = 0;  // a plan
};

// When a run ends, if the strategy does not before.
struct Enough {
  size_t trials = std::numeric_limits<size_t>::max();
  double us = 0;  // with one of so much or less
};

struct ReplayRun {
  std::vector<size_t> tried;  // candidates, each once, in order
  double seconds = 0;         // from the first plan to the last trial's end
  size_t codes = 0;           // compiled, those that nothing was tried of included
};

// A search's field, of a space as it is searched on that host.
search::Field FieldOn(const Host& host, const RecordedSpace& space);

// The same strategy, seed, space and host give the same every time.
ReplayRun ReplayOn(const Host& host, search::Strategy& strategy, const RecordedSpace& space, const Enough& enough = {});

// What is tried where all code is there.
std::vector<size_t> Replay(search::Strategy& strategy, const RecordedSpace& space, size_t most_trials,
                           double enough_us = 0);

// Trials until one within `share` of the best; nullopt when there was none.
std::optional<size_t> TrialsToWithin(double share, const std::vector<size_t>& tried, const RecordedSpace& space);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_REPLAY_H_
