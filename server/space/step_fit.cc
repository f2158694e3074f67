#include "server/space/step_fit.h"

#include <algorithm>
#include <cstdlib>

namespace attune::space {
namespace {

// No length is beyond 2^24, so that no product of slope and length overflows.
constexpr int64_t kSteepest = int64_t{1} << 38;

}  // namespace

bool StepFit::Take(int64_t value) {
  const int64_t change = value - last_;
  const bool jumps = change != 0;
  if (jumps && (jump_ >= 0 ? change != slope_ : std::abs(change) > kSteepest)) return false;
  if (period_ > 0) {
    if (jumps != ((end_ - jump_) % period_ == 0)) return false;
  } else if (jumps && jump_ >= 0) {
    // What came before the first jump was a period, or the end of one.
    if (end_ - jump_ < jump_ - first_) return false;
    period_ = end_ - jump_;
  } else if (jumps) {
    jump_ = end_;
    slope_ = change;
  }
  last_ = value;
  ++end_;
  return true;
}

v1::Step StepFit::step() const {
  v1::Step step;
  const int64_t divide = constant() ? 1 : period_ > 0 ? period_ : std::max(end_ - jump_, jump_ - first_);
  step.set_divide(divide);
  step.set_slope(slope_);
  if (!constant()) step.set_add((divide - jump_ % divide) % divide);
  step.set_base(initial_ - slope_ * ((first_ + step.add()) / divide));
  return step;
}

}  // namespace attune::space
