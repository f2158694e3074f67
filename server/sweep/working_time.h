// The time that a job works: what it waits for the jobs ahead of it is left out.
#ifndef ATTUNE_SERVER_SWEEP_WORKING_TIME_H_
#define ATTUNE_SERVER_SWEEP_WORKING_TIME_H_

#include <mutex>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/trials/waiter.h"

namespace attune::sweep {

// Thread-safe. Outlives whoever has its Counted waiter.
class WorkingTime {
 public:
  explicit WorkingTime(Clock clock) : clock_(std::move(clock)), begin_(clock_()) {}

  // `waiter`, with what it is told also told here.
  trials::Waiter Counted(trials::Waiter waiter) {
    waiter.moved = [this, told = std::move(waiter.moved)](const trials::QueuePlace& place) {
      Move(place.position > 0);
      if (told) told(place);
    };
    return waiter;
  }

  // Since this was made.
  absl::Duration Elapsed() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waits_since_.value_or(clock_()) - begin_ - waited_;
  }

 private:
  void Move(bool waits) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waits == waits_since_.has_value()) return;
    if (waits) {
      waits_since_ = clock_();
    } else {
      waited_ += clock_() - *waits_since_;
      waits_since_.reset();
    }
  }

  const Clock clock_;
  const absl::Duration begin_;
  mutable std::mutex mutex_;
  absl::Duration waited_;
  std::optional<absl::Duration> waits_since_;
};

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_WORKING_TIME_H_
