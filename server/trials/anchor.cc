#include "server/trials/anchor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attune::trials {

bool Anchor::Note(const v1::Timing& timing, const worker::v1::Candidate& candidate) {
  ++since_;
  if (timing.median_us() <= 0 || timing.contended() || timing.given_up()) return false;
  if (candidate_.has_value() && timing.high_us() >= (timing_.median_us() > 0 ? timing_.low_us() : chosen_for_us_))
    return false;
  candidate_ = candidate;
  chosen_for_us_ = timing.low_us();
  timing_.Clear();
  due_ = true;
  return true;
}

const worker::v1::Candidate* Anchor::Due() const {
  if (candidate_.has_value() && due_) return &*candidate_;
  if (offered_.has_value()) return &*offered_;
  return candidate_.has_value() && since_ >= kEvery ? &*candidate_ : nullptr;
}

void Anchor::Timed(const std::optional<v1::Timing>& timing) {
  if (offered_.has_value() && !(candidate_.has_value() && due_)) return TimedOffered(timing);
  since_ = 0;
  due_ = false;
  const v1::Timing before = timing_;
  timing_.Clear();
  if (!timing.has_value() || timing->contended()) return;
  timing_ = *timing;
  if (before.median_us() <= 0) return;
  const bool apart = timing_.low_us() > before.high_us() || timing_.high_us() < before.low_us();
  const double by = std::abs(timing_.median_us() / before.median_us() - 1);
  if (apart && by > kMoved) moved_ = std::max(moved_, by);
}

void Anchor::TimedOffered(const std::optional<v1::Timing>& timing) {
  const worker::v1::Candidate offered = *std::exchange(offered_, std::nullopt);
  if (!timing.has_value() || timing->contended()) return;
  if (candidate_.has_value() && timing_.median_us() > 0 && timing->high_us() >= timing_.low_us()) return;
  candidate_ = offered;
  chosen_for_us_ = timing->low_us();
  timing_ = *timing;
  since_ = 0;
}

double Anchor::YardstickUs() const { return timing_.high_us(); }

}  // namespace attune::trials
