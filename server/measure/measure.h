// The timing protocol: how many samples, which are thrown away, when to stop. Free of any GPU API; a Timer is the
// world. Method: docs/measuring.md.
#ifndef ATTUNE_SERVER_MEASURE_MEASURE_H_
#define ATTUNE_SERVER_MEASURE_MEASURE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attune/v1/trial.pb.h"

namespace attune::measure {

// What is sampled: one variant under one policy.
class Timer {
 public:
  struct Sample {
    double us = 0;       // of one run
    double step_us = 0;  // in which the clock counts; 0: too small to matter
    int sm_clock_mhz = 0;
    double power_w = 0;
    int temperature_c = 0;
    int64_t throttle_reasons = 0;
    bool contended = false;
  };
  virtual ~Timer() = default;
  // One graph of `runs` runs; COLD ignores it.
  virtual absl::StatusOr<Sample> Take(int runs) = 0;
  // Lets the device cool down and its clock come back.
  virtual void Pause() = 0;
};

struct Interval {
  double low = 0;
  double median = 0;
  double high = 0;
};
// Median and the distribution-free 95 % confidence interval from order statistics (Hahn and Meeker, Statistical
// Intervals, section 5.2: binomial(n, 1/2)). With fewer than 6 samples the interval is [min, max].
Interval MedianInterval(std::vector<double> samples);

// The same of samples in the order they were taken, when they may depend on each other: wider by
// sqrt((1 + r) / (1 - r)) where neighbours are correlated by r > 0, and over both clusters where they fall into two.
Interval SequenceInterval(const std::vector<double>& in_order);

struct Options {
  int min_samples = 7;
  int max_samples = 60;
  double relative_width = 0.01;                          // settled when (high - low) / median is below (SampleSet)
  absl::Duration sample_time = absl::Microseconds(400);  // a graph is made this long, 1..1000 runs
  absl::Duration max_time = absl::Milliseconds(250);     // of sampling, per variant
  double clock_floor = 0.75;                             // of the round's highest clock; below it a sample is discarded
  double likely_us = 0;                                  // of a run, to begin with a graph of about its length
  std::function<absl::Time()> now = absl::Now;           // tests bring their own clock
};

// How far above the leader an interval must lie for its variant to be given up: further than what one loading of a
// variant differs from another.
inline constexpr double kGiveUpMargin = 0.035;

// Warms up, sizes the graph, samples until settled, out of time, or given up: at 5, 9 or 17 samples its interval lies
// wholly more than kGiveUpMargin above `leader_us` (0: no leader).
absl::StatusOr<v1::Timing> Measure(Timer& timer, v1::Policy policy, const Options& options, double leader_us);

// One contestant's share of a cycle.
struct RoundTimes {
  v1::Timing timing;
  std::vector<double> us;  // by round; 0 where the sample does not count
};
// One cycle of a play-off (paired_rounds.h): all are warmed up, then one sample each a round, in random order. `rounds`
// 0: 9, fewer of slow ones, 3 at least.
absl::StatusOr<std::vector<RoundTimes>> PlayCycle(const std::vector<Timer*>& timers, v1::Policy policy,
                                                  const Options& options, int rounds, uint64_t order_seed);

// Of two timings of different days: apart when the intervals do not overlap.
enum class Comparison { kFaster, kSlower, kTie };
Comparison Compare(const v1::Timing& candidate, const v1::Timing& incumbent);

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_MEASURE_H_
