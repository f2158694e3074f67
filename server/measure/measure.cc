// One variant alone, racing against a leader's time.
#include "server/measure/measure.h"

#include "absl/status/status.h"
#include "server/measure/sampler.h"

namespace attune::measure {
namespace {

// A variant as fast as the leader has one chance in 2^5 that all of five samples lie above its median.
constexpr int kSamplesToLoseARace = 5;
// Even when there is no time, as many as a median needs to be one.
constexpr int kFewestSamples = 3;

}  // namespace

absl::StatusOr<v1::Timing> Measure(Timer& timer, v1::Policy policy, const Options& options, double leader_us) {
  Sampler sampler(timer, policy, options);
  if (absl::Status status = sampler.WarmUp(); !status.ok()) return status;
  const absl::Time until = options.now() + options.max_time;
  const SampleSet& samples = sampler.samples();
  while (!sampler.finished()) {
    if (absl::Status status = sampler.TakeSample(); !status.ok()) return status;
    const bool lost = leader_us > 0 && samples.accepted() >= kSamplesToLoseARace && samples.interval().low > leader_us;
    const bool late = options.now() >= until && samples.taken() >= kFewestSamples;
    if (lost || late) break;
  }
  return samples.ToTiming();
}

}  // namespace attune::measure
