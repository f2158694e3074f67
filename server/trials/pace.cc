#include "server/trials/pace.h"

#include <algorithm>

namespace attune::trials {
namespace {

constexpr int64_t kLeastTrials = 4;

// Fitted to four problems of attention_mma on an H200 (docs/benchmarks/2026-11-27-h200-quick-look.md).
constexpr absl::Duration kLeastPlayOff = absl::Milliseconds(400);
constexpr double kPreparations = 1.75;

}  // namespace

std::optional<absl::Duration> TimeLeft(const TrialPace& pace, int64_t left, int64_t codes_left) {
  if (pace.run < kLeastTrials) return std::nullopt;
  const absl::Duration device = pace.device / pace.run * std::max<int64_t>(left, 0) / std::max(pace.cards, 1);
  const absl::Duration a_code = pace.compiling / std::max<int64_t>(pace.codes, 1);
  // Not more codes than trials.
  const int64_t codes = std::clamp<int64_t>(codes_left, 0, std::max<int64_t>(left, 0));
  return std::max(device, a_code * codes / std::max(pace.compilers, 1));
}

absl::Duration PlayOffTime(absl::Duration prepare) { return kLeastPlayOff + kPreparations * prepare; }

}  // namespace attune::trials
