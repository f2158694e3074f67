// Which trials need not be repeated while what they depend on is as it was.
#ifndef ATTUNE_SERVER_CATALOG_HOLDS_H_
#define ATTUNE_SERVER_CATALOG_HOLDS_H_

#include "attune/v1/trial.pb.h"
#include "server/measure/measure.h"

namespace attune::catalog {

// A verdict on code holds. A time does not that another process disturbed or that would not settle: a noisy night
// would exclude the best variant until the sources change. One that was given up does not when `best_us`, the best time
// known otherwise (0: none), has become clearly worse than it.
inline bool Holds(const v1::Trial& trial, double best_us) {
  const v1::Timing& timing = trial.timing();
  if (trial.verdict() == v1::VERDICT_UNSTABLE) return timing.median_us() <= 0 || timing.settled();
  if (trial.verdict() != v1::VERDICT_OK && trial.verdict() != v1::VERDICT_SLOW) return true;
  if (timing.contended()) return false;
  return !timing.given_up() || (best_us > 0 && best_us <= (1 + measure::kGiveUpMargin) * timing.low_us());
}

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_HOLDS_H_
