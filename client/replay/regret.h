// How near the best a search ends, and what it says of that.
#ifndef ATTUNE_CLIENT_REPLAY_REGRET_H_
#define ATTUNE_CLIENT_REPLAY_REGRET_H_

#include <cstddef>
#include <string>
#include <vector>

#include "attune/v1/service.pb.h"
#include "client/replay/recorded_space.h"
#include "client/replay/replay.h"

namespace attune::replay {

// Of one run of GUIDED.
struct SearchEnd {
  size_t trials = 0;
  double regret = 0;      // time of its best over the space's, less 1; infinite where nothing was good
  double confidence = 0;  // that nothing is better by more than search::kWithin, as it says itself; 0: it says nothing
  size_t codes = 0;       // compiled
  double seconds = 0;     // as in ReplayRun
};

// Of one space.
struct Ends {
  std::string space;
  size_t candidates = 0;
  std::vector<SearchEnd> runs;  // that of seed 1 first
};

struct RegretOptions {
  attune::v1::Strategy::Effort effort = attune::v1::Strategy::EFFORT_STANDARD;
  int seeds = 20;
  Host host = {.compilers = 0, .trial_ms = 25, .think_ms = 20};
};

// `spaces` with what is in their fields: likely ones and neighbours are the caller's to give or take away.
std::vector<Ends> SearchToTheEnd(const std::vector<RecordedSpace>& spaces, const RegretOptions& options);

// A line a space, and one of all runs together.
std::string Markdown(const std::vector<Ends>& ends);
// A line a run.
std::string Csv(const std::vector<Ends>& ends);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_REGRET_H_
