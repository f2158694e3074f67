// Days and times that tests of a history are made of.
#ifndef ATTUNE_SERVER_SWEEP_TESTING_NIGHTS_H_
#define ATTUNE_SERVER_SWEEP_TESTING_NIGHTS_H_

#include <cstdint>

#include "attune/v1/trial.pb.h"

namespace attune::sweep {

inline constexpr int64_t kDay = 86'400;
inline constexpr int64_t kFirst = 1'800'000'000;  // seconds since 1970, of day 0

// With an interval of 0.2 % to each side.
inline v1::Timing TimingOf(double median_us) {
  v1::Timing timing;
  timing.set_median_us(median_us);
  timing.set_low_us(median_us * 0.998);
  timing.set_high_us(median_us * 1.002);
  timing.set_settled(true);
  return timing;
}

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_TESTING_NIGHTS_H_
