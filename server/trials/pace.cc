#include "server/trials/pace.h"

#include <algorithm>

namespace attune::trials {
namespace {

constexpr int64_t kLeastTrials = 4;

}  // namespace

std::optional<absl::Duration> TimeLeft(const TrialPace& pace, int64_t left) {
  if (pace.run < kLeastTrials) return std::nullopt;
  const absl::Duration together = std::max(pace.device, pace.compiling / std::max(1, pace.compilers));
  return together / pace.run * std::max<int64_t>(left, 0);
}

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

}  // namespace attune::trials
