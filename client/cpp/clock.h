// Time as the client sees it, so that tests can stand in for it.
#ifndef ATTUNE_CLIENT_CPP_CLOCK_H_
#define ATTUNE_CLIENT_CPP_CLOCK_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace attune {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const { return absl::Now(); }
  virtual void SleepFor(absl::Duration duration) const { absl::SleepFor(duration); }

  // The real one; lives as long as the process.
  static const Clock* Real();
};

inline const Clock* Clock::Real() {
  static const Clock clock;
  return &clock;
}

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_CLOCK_H_
