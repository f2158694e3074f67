// How long the trials of a problem will take from here, judged by those that ran.
#ifndef ATTUNE_SERVER_TRIALS_PACE_H_
#define ATTUNE_SERVER_TRIALS_PACE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace attune::trials {

// The trials of one problem. Compiling runs beside the device and ahead of it: what was compiled while the device was
// still being prepared passes it in no time and says nothing about the rest, so the time that trials are done in is no
// measure. The slower of the two sides sets the pace.
struct TrialPace {
  int64_t run = 0;           // without those reused
  absl::Duration device;     // that they had the device for, together
  absl::Duration compiling;  // that their codes took to compile, one after the other; cached ones took none
  int compilers = 1;         // at work at once
};

// For `left` more; nullopt while too few have run to tell.
std::optional<absl::Duration> TimeLeft(const TrialPace& pace, int64_t left);

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_PACE_H_
