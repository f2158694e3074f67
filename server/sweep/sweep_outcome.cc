#include "server/sweep/sweep_outcome.h"

#include <cmath>
#include <cstddef>

#include "server/measure/measure.h"

namespace attune::sweep {
namespace {

constexpr size_t kConfirmed = 3;
constexpr size_t kMost = 6;

}  // namespace

Reading Read(const v1::Timing& before, const v1::Timing& now, double regression) {
  if (now.contended()) return Reading::kUnclear;
  if (std::abs(now.median_us() - before.median_us()) <= regression * before.median_us()) return Reading::kSame;
  switch (measure::Compare(now, before)) {
    case measure::Comparison::kFaster:
      return Reading::kFaster;
    case measure::Comparison::kSlower:
      return Reading::kSlower;
    case measure::Comparison::kTie:
      break;
  }
  return Reading::kUnclear;
}

std::optional<Reading> Confirmed(absl::Span<const Reading> readings) {
  const Reading last = readings.back();
  if (last == Reading::kSame) return last;
  if (last == Reading::kUnclear || readings.size() < kConfirmed) return std::nullopt;
  for (const Reading reading : readings.last(kConfirmed)) {
    if (reading != last) return std::nullopt;
  }
  return last;
}

std::optional<v1::SweepReport::Outcome> Settle(absl::Span<const Reading> readings) {
  if (readings.empty()) return std::nullopt;
  if (const std::optional<Reading> confirmed = Confirmed(readings); confirmed.has_value()) {
    if (*confirmed == Reading::kSame) return v1::SweepReport::OUTCOME_SAME;
    return *confirmed == Reading::kFaster ? v1::SweepReport::OUTCOME_FASTER : v1::SweepReport::OUTCOME_SLOWER;
  }
  if (readings.size() >= kMost) return v1::SweepReport::OUTCOME_AMBIGUOUS;
  return std::nullopt;
}

}  // namespace attune::sweep
