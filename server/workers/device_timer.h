// A candidate on a device as the timing protocol sees it.
#ifndef ATTUNE_SERVER_WORKERS_DEVICE_TIMER_H_
#define ATTUNE_SERVER_WORKERS_DEVICE_TIMER_H_

#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/measure/measure.h"

namespace attune::workers {

// `device`, and what `runnables` points to, outlive it.
class DeviceTimer : public measure::Timer {
 public:
  DeviceTimer(device::Device& device, absl::Span<device::Runnable* const> runnables, v1::Policy policy)
      : device_(device), runnables_(runnables), policy_(policy) {}

  absl::StatusOr<Sample> Take(int runs) override;
  void Pause() override;

 private:
  device::Device& device_;
  absl::Span<device::Runnable* const> runnables_;
  v1::Policy policy_;
};

}  // namespace attune::workers

#endif  // ATTUNE_SERVER_WORKERS_DEVICE_TIMER_H_
