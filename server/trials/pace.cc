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

}  // namespace attune::trials
