// When and how often a call is tried again: on UNAVAILABLE alone, with exponential back-off, inside the call's
// deadline.
#ifndef ATTUNE_CLIENT_CPP_RETRY_H_
#define ATTUNE_CLIENT_CPP_RETRY_H_

#include <cstdint>
#include <random>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/cpp/clock.h"

namespace attune {

struct RetryPolicy {
  int attempts = 4;  // the first one included; 1 is no retry
  absl::Duration initial_wait = absl::Milliseconds(50);
  double multiplier = 2;
  absl::Duration longest_wait = absl::Seconds(2);
  // Each wait is spread evenly over [1 - jitter, 1 + jitter] of itself, so that clients do not come back in step.
  double jitter = 0.2;
};

// The waits between attempts, one after the other. Not thread-safe.
class Backoff {
 public:
  Backoff(const RetryPolicy& policy, uint64_t seed);
  absl::Duration Next();
  // The next wait is the first again.
  void Reset();

 private:
  const RetryPolicy policy_;
  absl::Duration wait_;
  std::mt19937_64 random_;
};

// Calls `call` until it answers anything but UNAVAILABLE, the attempts are used up, or the next wait would end past
// `deadline`. Returns the last answer.
absl::Status CallWithRetries(const RetryPolicy& policy, absl::Time deadline, const Clock& clock,
                             absl::FunctionRef<absl::Status()> call);

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_RETRY_H_
