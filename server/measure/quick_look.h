// The first look at how fast a variant is: a few short samples, before the checks that what is to be served has to
// pass.
#ifndef ATTUNE_SERVER_MEASURE_QUICK_LOOK_H_
#define ATTUNE_SERVER_MEASURE_QUICK_LOOK_H_

#include <optional>

#include "absl/status/statusor.h"
#include "server/measure/measure.h"

namespace attune::measure {

// What trials of a job race against.
struct Leader {
  double us = 0;         // 0: there is none
  int sm_clock_mhz = 0;  // that it was timed at; 0: not known
};

// A variant is given up when one sample lies this far above the leader's time, or each of kQuickSamples above
// kQuickMargin. Samples as long as those of Measure (long runs are) are as good as its: of them, kLongSamples above
// kGiveUpMargin are enough, as at its first look.
inline constexpr double kHopelessMargin = 0.5;
inline constexpr double kQuickMargin = 0.1;
inline constexpr int kQuickSamples = 3;
inline constexpr int kLongSamples = 5;

struct QuickTime {
  double us = 0;  // of a run, by the last sample; 0: none was taken
  // The samples that the variant is given up by, as a timing with `given_up`; none where it may be as fast as the
  // leader.
  std::optional<v1::Timing> given_up = {};
};
// Gives nobody up without a leader, or while another process is on the device. A sample at a lower clock than the
// leader's counts as if it had been taken at the leader's and all of it were arithmetic: a device that slows down gives
// nobody up. `options.likely_us`, a run's time with its launch, sizes the first sample; without it a single run does.
absl::StatusOr<QuickTime> QuickLook(Timer& timer, v1::Policy policy, const Options& options, const Leader& leader);

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_QUICK_LOOK_H_
