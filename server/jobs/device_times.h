// How long each principal's operations ran on cards today; a day begins at 00:00 UTC.
#ifndef ATTUNE_SERVER_JOBS_DEVICE_TIMES_H_
#define ATTUNE_SERVER_JOBS_DEVICE_TIMES_H_

#include <map>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attune::jobs {

absl::Time BeginOfDay(absl::Time now);

// Of operations that have ended. Thread-safe.
class DeviceTimes {
 public:
  // Counts on the day of `ended`; not when that day is over.
  void Add(const std::string& principal, absl::Duration time, absl::Time ended);
  absl::Duration Of(absl::string_view principal, absl::Time now);
  void Clear();

 private:
  void TurnTo(absl::Time now);

  std::mutex mutex_;  // guards what follows
  absl::Time day_ = absl::InfinitePast();
  std::map<std::string, absl::Duration, std::less<>> times_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_DEVICE_TIMES_H_
