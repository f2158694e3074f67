#include "client/cpp/retry.h"

#include <algorithm>
#include <utility>

namespace attune {

Backoff::Backoff(const RetryPolicy& policy, uint64_t seed)
    : policy_(policy), wait_(policy.initial_wait), random_(seed) {}

absl::Duration Backoff::Next() {
  std::uniform_real_distribution<double> spread(1 - policy_.jitter, 1 + policy_.jitter);
  const absl::Duration wait = std::min(wait_, policy_.longest_wait) * spread(random_);
  wait_ = std::min(wait_ * policy_.multiplier, policy_.longest_wait);
  return wait;
}

void Backoff::Reset() { wait_ = policy_.initial_wait; }

absl::Status CallWithRetries(const RetryPolicy& policy, absl::Time deadline, const Clock& clock,
                             absl::FunctionRef<absl::Status()> call) {
  Backoff backoff(policy, std::random_device()());
  absl::Status refusal;
  for (int attempt = 1;; ++attempt) {
    absl::Status status = call();
    // That time was up in a later attempt says less than what the last answer said.
    if (absl::IsDeadlineExceeded(status) && !refusal.ok()) return refusal;
    if (!absl::IsUnavailable(status) || attempt >= policy.attempts) return status;
    const absl::Duration wait = backoff.Next();
    if (clock.Now() + wait >= deadline) return status;
    clock.SleepFor(wait);
    refusal = std::move(status);
  }
}

}  // namespace attune
