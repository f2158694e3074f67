#include "server/jobs/device_times.h"

namespace attune::jobs {

absl::Time BeginOfDay(absl::Time now) {
  return absl::FromCivil(absl::ToCivilDay(now, absl::UTCTimeZone()), absl::UTCTimeZone());
}

void DeviceTimes::TurnTo(absl::Time now) {
  const absl::Time day = BeginOfDay(now);
  if (day <= day_) return;
  day_ = day;
  times_.clear();
}

void DeviceTimes::Add(const std::string& principal, absl::Duration time, absl::Time ended) {
  const std::lock_guard lock(mutex_);
  TurnTo(ended);
  if (ended >= day_) times_[principal] += time;
}

absl::Duration DeviceTimes::Of(absl::string_view principal, absl::Time now) {
  const std::lock_guard lock(mutex_);
  TurnTo(now);
  const auto found = times_.find(principal);
  return found == times_.end() ? absl::ZeroDuration() : found->second;
}

void DeviceTimes::Clear() {
  const std::lock_guard lock(mutex_);
  times_.clear();
}

}  // namespace attune::jobs
