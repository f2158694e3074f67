#include "server/trials/anchor.h"

#include <algorithm>
#include <cmath>

namespace attune::trials {

void Anchor::Note(const v1::Timing& timing, const worker::v1::Candidate& candidate) {
  ++since_;
  if (timing.median_us() <= 0 || timing.contended() || timing.given_up()) return;
  if (candidate_.has_value() && timing.high_us() >= (timing_.median_us() > 0 ? timing_.low_us() : chosen_for_us_))
    return;
  candidate_ = candidate;
  chosen_for_us_ = timing.low_us();
  timing_.Clear();
  due_ = true;
}

const worker::v1::Candidate* Anchor::Due() const {
  return candidate_.has_value() && (due_ || since_ >= kEvery) ? &*candidate_ : nullptr;
}

void Anchor::Timed(const std::optional<v1::Timing>& timing) {
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

double Anchor::YardstickUs() const { return timing_.high_us(); }

}  // namespace attune::trials
