// The SM clock as the device itself counts it, now. NVML answers from a cache that lags behind by many samples.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_CLOCK_PROBE_H_
#define ATTUNE_SERVER_DEVICE_CUDA_CLOCK_PROBE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"

namespace attune::device::cuda {

// One thread that counts its SM's cycles over a dozen microseconds of the global timer.
class ClockProbe {
 public:
  // Needs a current context. `api` and `stream` outlive it.
  static absl::StatusOr<std::unique_ptr<ClockProbe>> Create(const DriverApi& api, StreamHandle stream);

  // MHz. Waits for the stream; takes about 25 us.
  absl::StatusOr<int> Read();

 private:
  ClockProbe(const DriverApi& api, StreamHandle stream) : api_(api), stream_(stream) {}

  const DriverApi& api_;
  const StreamHandle stream_;
  LoadedModule module_;
  FunctionHandle function_ = nullptr;
  HostMemory counts_;  // cycles and nanoseconds, two uint64_t that the device writes
  DevicePointer counts_address_ = 0;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_CLOCK_PROBE_H_
