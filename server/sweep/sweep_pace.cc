#include "server/sweep/sweep_pace.h"

#include <algorithm>

namespace attune::sweep {

void SweepPace::End(absl::Duration now) {
  ++done_;
  ++done_here_;
  spent_ += now - begun_;
}

std::optional<absl::Duration> SweepPace::TimeLeft(absl::Duration now) const {
  if (done_ >= problems_) return absl::ZeroDuration();
  if (done_here_ == 0) return std::nullopt;
  const absl::Duration each = spent_ / done_here_;
  return each * (problems_ - done_) - std::min(now - begun_, each);
}

}  // namespace attune::sweep
