// A candidate on a device as the measurement of energy sees it.
#ifndef ATTUNE_SERVER_WORKER_DEVICE_LOAD_H_
#define ATTUNE_SERVER_WORKER_DEVICE_LOAD_H_

#include <bit>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/measure/energy.h"

namespace attune::worker {

// `device`, and what `runnables` points to, outlive it. The runs are HOT's, or L2_WARM's.
//
// A graph that is new to the device is replayed once before it counts, and nobody would know of these runs: so runs are
// made up of graphs whose lengths are powers of two, which are soon all there.
class DeviceLoad : public measure::Load {
 public:
  DeviceLoad(device::Device& device, absl::Span<device::Runnable* const> runnables, attune::v1::Policy policy)
      : device_(device), runnables_(policy == attune::v1::POLICY_HOT ? runnables : runnables.first(1)) {}

  absl::StatusOr<double> Run(int runs) override {
    double all = 0;
    for (int left = runs; left > 0;) {
      const int some = static_cast<int>(std::bit_floor(static_cast<unsigned>(left)));
      const absl::StatusOr<double> seconds = device_.TimeHot(runnables_, some);
      if (!seconds.ok()) return seconds.status();
      all += *seconds * some;
      left -= some;
    }
    return all / runs * 1e6;
  }
  absl::StatusOr<double> ReadJoules() override { return device_.ReadJoules(); }
  bool Contended() override { return device_.ReadTelemetry().contended; }

 private:
  device::Device& device_;
  const absl::Span<device::Runnable* const> runnables_;
};

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_DEVICE_LOAD_H_
