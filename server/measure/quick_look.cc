#include "server/measure/quick_look.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/measure/sample_set.h"

namespace attune::measure {
namespace {

// Of a sample: long against the clock's resolution of about half a microsecond, short against a check.
constexpr absl::Duration kSampleTime = absl::Microseconds(100);
constexpr double kMostRuns = 100;

double AtLeadersClock(const Timer::Sample& sample, const Leader& leader) {
  const bool known = sample.sm_clock_mhz > 0 && leader.sm_clock_mhz > 0;
  return known ? sample.us * std::min(1.0, static_cast<double>(sample.sm_clock_mhz) / leader.sm_clock_mhz) : sample.us;
}

}  // namespace

absl::StatusOr<QuickTime> QuickLook(Timer& timer, v1::Policy policy, const Options& options, const Leader& leader) {
  QuickTime quick;
  if (leader.us <= 0) return quick;
  // Long enough not to be mostly a launch.
  const auto runs_for = [policy](double us) {
    const double wanted = policy == v1::POLICY_COLD ? 1 : absl::ToDoubleMicroseconds(kSampleTime) / us;
    return wanted > 2 ? static_cast<int>(std::min(std::ceil(wanted), kMostRuns)) : 1;
  };
  SampleSet samples(options);
  double least_us = std::numeric_limits<double>::infinity();
  int runs = options.likely_us > 0 ? runs_for(options.likely_us) : 1;
  while (samples.taken() < kLongSamples) {
    const absl::StatusOr<Timer::Sample> sample = timer.Take(runs);
    if (!sample.ok()) return sample.status();
    if (!(std::isfinite(sample->us) && sample->us > 0)) {
      return absl::InternalError(absl::StrCat("a sample took ", sample->us, " us; it must be above 0"));
    }
    quick.us = sample->us;
    const double us = AtLeadersClock(*sample, leader);
    const bool is_long = runs * sample->us >= absl::ToDoubleMicroseconds(options.sample_time);
    if (sample->contended || us <= (1 + (is_long ? kGiveUpMargin : kQuickMargin)) * leader.us) return quick;
    // The time of a single short run is mostly that of its launch.
    if (runs == 1 && runs_for(sample->us) > 1) {
      runs = runs_for(sample->us);
      continue;
    }
    samples.Add(*sample);
    least_us = std::min(least_us, us);
    if (us > (1 + kHopelessMargin) * leader.us) break;
    if (samples.taken() >= kQuickSamples && least_us > (1 + kQuickMargin) * leader.us) break;
  }
  quick.given_up = samples.ToTiming();
  quick.given_up->set_given_up(true);
  return quick;
}

}  // namespace attune::measure
