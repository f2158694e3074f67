// How long a search would have taken with compilers and a device, on a clock of its own: a recorded space knows what
// each code took to compile.
#ifndef ATTUNE_CLIENT_REPLAY_TIMED_REPLAY_H_
#define ATTUNE_CLIENT_REPLAY_TIMED_REPLAY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/recorded_space.h"
#include "server/search/strategy.h"

namespace attune::replay {

struct Host {
  int compilers = 15;    // codes compiled at once; 0: all code is there from the start. Four codes each are asked for
                         // and not yet taken at most, as by the daemon
  double trial_ms = 25;  // the device's work of a trial
  double think_ms = 20;  // a plan
};

struct TimedRun {
  std::vector<size_t> tried;
  double seconds = 0;  // from the first plan to the last trial's end
  size_t codes = 0;    // compiled, those that nothing was tried of included
};

// Runs a strategy to its end. The same strategy, seed, space and host give the same every time.
TimedRun ReplayTimed(search::Strategy& strategy, const RecordedSpace& space, const Host& host);

struct TimedOptions {
  Host host;
  int seeds = 20;
  double within = 0.02;  // of the best
};

// GUIDED with standard effort, which is what `tune` does: a line a space with medians over the seeds, as Markdown.
// InvalidArgument for a space without compile times, where there are compilers.
absl::StatusOr<std::string> TimeSearches(const std::vector<RecordedSpace>& spaces, const TimedOptions& options);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_TIMED_REPLAY_H_
