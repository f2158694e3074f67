// Points in time that a change of the wall clock does not move.
#ifndef ATTUNE_SERVER_BASE_DEADLINE_H_
#define ATTUNE_SERVER_BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace attune {

using Deadline = std::chrono::steady_clock::time_point;

// At most a year from now: a longer sum may overflow the clock.
inline Deadline After(absl::Duration duration) {
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(std::min(duration, absl::Hours(24 * 365)));
}
inline constexpr Deadline kNever = Deadline::max();

// For poll(2): milliseconds left, at least 0; -1 for kNever.
inline int PollTimeout(Deadline deadline) {
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_DEADLINE_H_
