// The clock of durations and deadlines: nobody sets it. Wall time (absl::Now) is for timestamps alone.
#ifndef ATTUNE_SERVER_BASE_CLOCK_H_
#define ATTUNE_SERVER_BASE_CLOCK_H_

#include <chrono>
#include <functional>

#include "absl/time/time.h"

namespace attune {

// Time since some point in the past; never less than before. Tests stand in their own.
using Clock = std::function<absl::Duration()>;

inline absl::Duration SteadyNow() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_CLOCK_H_
