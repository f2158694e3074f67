// How long a problem will take from here, judged by its trials that ran.
#ifndef ATTUNE_SERVER_TRIALS_PACE_H_
#define ATTUNE_SERVER_TRIALS_PACE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace attune::trials {

// The trials of one problem. Compiling runs beside the device and ahead of it: what was compiled while the device was
// still being prepared passes it in no time and says nothing about the rest, so the time that trials are done in is no
// measure. The slower of the two sides sets the pace: trials left on the device, codes left in the compilers.
struct TrialPace {
  int64_t run = 0;                                  // without those reused
  absl::Duration device = absl::ZeroDuration();     // that they had the device for, together
  int64_t codes = 0;                                // of theirs, which several may share
  absl::Duration compiling = absl::ZeroDuration();  // that these took, one after the other; cached ones took none
  int compilers = 1;                                // at work at once
  int cards = 1;                                    // the same
};

// For `left` more trials, with `codes_left` more codes; nullopt while too few have run to tell.
std::optional<absl::Duration> TimeLeft(const TrialPace& pace, int64_t left, int64_t codes_left);

// What a play-off takes, with the checks of what is to be served, of a problem that takes `prepare` to prepare:
// it is prepared anew for it, and the host looks at the same outputs.
absl::Duration PlayOffTime(absl::Duration prepare);

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_PACE_H_
