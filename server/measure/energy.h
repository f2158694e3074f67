// What a run takes in joules, by a counter of the whole card that grows in steps of 20 to 100 ms. Method:
// docs/measuring.md.
#ifndef ATTUNE_SERVER_MEASURE_ENERGY_H_
#define ATTUNE_SERVER_MEASURE_ENERGY_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attune/v1/trial.pb.h"

namespace attune::measure {

// What is measured: one variant that keeps the device busy.
class Load {
 public:
  virtual ~Load() = default;
  // Runs back to back; microseconds of one.
  virtual absl::StatusOr<double> Run(int runs) = 0;
  // The counter. FailedPrecondition where there is none.
  virtual absl::StatusOr<double> ReadJoules() = 0;
  // Whether another process computes on the device.
  virtual bool Contended() = 0;
};

struct EnergyOptions {
  absl::Duration warm_up = absl::Milliseconds(200);  // of runs, before anything counts
  absl::Duration span = absl::Milliseconds(300);     // of runs at least, from one step of the counter to another
  int spans = 3;
  absl::Duration at_once = absl::Milliseconds(5);  // of runs, between two looks at the counter
  absl::Duration longest_step = absl::Seconds(1);  // of runs: a counter that stands still for longer does not count
  std::function<absl::Time()> now = absl::Now;     // tests bring their own clock
};

// FailedPrecondition, with a sentence, where the counter is missing or does not count.
absl::StatusOr<v1::Energy> MeasureEnergy(Load& load, const EnergyOptions& options);

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_ENERGY_H_
