// A candidate on a device as the timing protocol sees it.
#ifndef ATTUNE_SERVER_WORKER_DEVICE_TIMER_H_
#define ATTUNE_SERVER_WORKER_DEVICE_TIMER_H_

#include <cstddef>

#include "absl/random/random.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/measure/measure.h"

namespace attune::worker {

// `device`, and what `runnables` points to, outlive it.
class DeviceTimer : public measure::Timer {
 public:
  DeviceTimer(device::Device& device, absl::Span<device::Runnable* const> runnables, attune::v1::Policy policy)
      : device_(device), runnables_(runnables), policy_(policy) {}

  absl::StatusOr<Sample> Take(int runs) override;
  void Pause() override;

  // Runs the first sets_to_check() runnables as the last sample did (but for COLD one behind the other), but each once:
  // what a run leaves undone would hide behind a later one on the same set.
  absl::Status RunAgain();
  // Those of the last sample.
  size_t sets() const;
  // Three at least where there are, however few the last sample took: a kernel that knows its buffers again is found
  // out, though one set has new inputs and keeps its outputs.
  size_t sets_to_check() const;
  attune::v1::Policy policy() const { return policy_; }

 private:
  // Seconds of a run in a graph of `runs`.
  absl::StatusOr<double> TakeHot(int runs);
  // That a sample may take in turn.
  size_t most_sets() const;

  device::Device& device_;
  absl::Span<device::Runnable* const> runnables_;
  attune::v1::Policy policy_;
  int runs_ = 1;  // of the last sample
  absl::BitGen random_;
};

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_DEVICE_TIMER_H_
