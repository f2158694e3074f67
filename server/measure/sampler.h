// A timer with its samples: warmed up, its graph sized, sampled one at a time.
#ifndef ATTUNE_SERVER_MEASURE_SAMPLER_H_
#define ATTUNE_SERVER_MEASURE_SAMPLER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/measure/measure.h"
#include "server/measure/sample_set.h"

namespace attune::measure {

class Sampler {
 public:
  // `timer` and `options` outlive it.
  Sampler(Timer& timer, v1::Policy policy, const Options& options);

  // Takes samples that do not count until two in a row agree and the graph has its length.
  absl::Status WarmUp();
  // Takes one sample, and pauses the device when it was taken below the clock floor.
  absl::Status TakeSample();

  const SampleSet& samples() const { return samples_; }
  // Settled, or as many samples as are allowed.
  bool finished() const;

 private:
  absl::StatusOr<Timer::Sample> Take();
  int RunsFor(double us) const;

  Timer& timer_;
  const v1::Policy policy_;
  const Options& options_;
  SampleSet samples_;
  int runs_ = 1;
};

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_SAMPLER_H_
