// How long a sweep will take from here: what is left, weighed by its work, and judged by the problems it has done.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace attune::sweep {

// What a sweep has done and is doing. Work is in any one unit, such as FLOP of a run of the problem, and above 0.
struct SweepPace {
  struct Done {
    absl::Duration spent;  // together
    int64_t problems = 0;
  };
  struct AtHand {
    double work = 1;
    absl::Duration since = {};               // how long it has been worked on
    std::optional<absl::Duration> eta = {};  // its own
  };

  int64_t cards = 1;               // that work on them side by side
  std::map<double, Done> done;     // by their work, those whose time is known
  std::map<double, int64_t> left;  // how many of each work, without those at hand
  std::vector<AtHand> at_hand = {};

  void Add(double work, absl::Duration spent) {
    done[work].spent += spent;
    ++done[work].problems;
  }

  // nullopt while what was done says too little of what is left: nobody is told a time that may be far off.
  std::optional<absl::Duration> TimeLeft() const;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_
