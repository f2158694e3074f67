// One variant alone, racing against a leader's time.
#include "server/measure/measure.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "server/measure/sampler.h"

namespace attune::measure {
namespace {

// A look at every sample would give up what is unlucky at any of them.
constexpr int kLooksToGiveUp[] = {5, 9, 17};
// Even when there is no time, as many as a median needs to be one.
constexpr int kFewestSamples = 3;

bool IsGivenUp(const SampleSet& samples, double leader_us) {
  const auto* const look = std::find(std::begin(kLooksToGiveUp), std::end(kLooksToGiveUp), samples.accepted());
  return leader_us > 0 && look != std::end(kLooksToGiveUp) && samples.interval().low > (1 + kGiveUpMargin) * leader_us;
}

}  // namespace

absl::StatusOr<v1::Timing> Measure(Timer& timer, v1::Policy policy, const Options& options, double leader_us) {
  Sampler sampler(timer, policy, options);
  if (absl::Status status = sampler.WarmUp(); !status.ok()) return status;
  const absl::Time until = options.now() + options.max_time;
  const SampleSet& samples = sampler.samples();
  while (!sampler.finished()) {
    if (absl::Status status = sampler.TakeSample(); !status.ok()) return status;
    if (IsGivenUp(samples, leader_us)) {
      v1::Timing timing = samples.ToTiming();
      timing.set_given_up(true);
      return timing;
    }
    if (options.now() >= until && samples.taken() >= kFewestSamples) break;
  }
  return samples.ToTiming();
}

}  // namespace attune::measure
