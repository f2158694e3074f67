// No storm of processes that end as soon as they start: each start that fails doubles the time until the next.
#ifndef ATTUNE_SERVER_SUPERVISOR_BACK_OFF_H_
#define ATTUNE_SERVER_SUPERVISOR_BACK_OFF_H_

#include <algorithm>

#include "absl/time/time.h"
#include "server/base/deadline.h"

namespace attune::supervisor {

class BackOff {
 public:
  explicit BackOff(absl::Duration longest) : longest_(longest) {}

  void Started() { delay_ = absl::ZeroDuration(); }
  void Failed() {
    delay_ = std::clamp(2 * delay_, absl::Milliseconds(100), longest_);
    retry_at_ = After(delay_);
  }
  Deadline retry_at() const { return retry_at_; }

 private:
  const absl::Duration longest_;
  absl::Duration delay_;
  Deadline retry_at_ = Deadline::min();
};

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_BACK_OFF_H_
