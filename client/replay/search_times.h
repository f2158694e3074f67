// How long a search would take from an empty store, and how near the best it would come.
#ifndef ATTUNE_CLIENT_REPLAY_SEARCH_TIMES_H_
#define ATTUNE_CLIENT_REPLAY_SEARCH_TIMES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/replay/recorded_space.h"
#include "client/replay/replay.h"

namespace attune::replay {

struct TimedOptions {
  Host host = {.compilers = 15, .trial_ms = 25, .think_ms = 20};
  int seeds = 20;
  double within = 0.02;  // of the best
};

// That its searches cannot be timed with compilers.
absl::Status NoCompileTimes(const RecordedSpace& space);

// GUIDED with standard effort, which is what `tune` does: a line a space with medians over the seeds, as Markdown.
// InvalidArgument for a space without compile times, where there are compilers.
absl::StatusOr<std::string> TimeSearches(const std::vector<RecordedSpace>& spaces, const TimedOptions& options);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_SEARCH_TIMES_H_
