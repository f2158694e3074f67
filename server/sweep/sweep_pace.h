// How long a sweep will take from here, judged by the problems it has done.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace attune::sweep {

// What a sweep has done and is doing.
struct SweepPace {
  int64_t left = 0;                          // problems, those at hand included
  int64_t cards = 1;                         // that work on them side by side
  int64_t timed = 0;                         // problems done whose time is known
  absl::Duration spent = {};                 // on those
  std::vector<absl::Duration> at_hand = {};  // how long each has been worked on

  // nullopt until one problem was done.
  std::optional<absl::Duration> TimeLeft() const {
    if (left <= 0) return absl::ZeroDuration();
    if (timed == 0) return std::nullopt;
    const absl::Duration each = spent / timed;
    absl::Duration rest = each * left;
    for (const absl::Duration since : at_hand) rest -= std::min(since, each);
    return rest / std::min(cards, left);
  }
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PACE_H_
