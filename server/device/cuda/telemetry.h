// Clock, power, temperature and other processes of one device, from NVML.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TELEMETRY_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TELEMETRY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/cuda/nvml_api.h"
#include "server/device/device.h"

namespace attune::device::cuda {

class TelemetryReader {
 public:
  // `nvml` may be null: everything read is then zero. `uuid` as in v1::Device.
  TelemetryReader(std::shared_ptr<const NvmlApi> nvml, const std::string& uuid);

  // Called while this process holds a context on the device. NVML is asked at most every 20 ms, for it is slow.
  Telemetry Read();
  // Device::ReadJoules.
  absl::StatusOr<double> ReadJoules() const;

 private:
  Telemetry ReadNow(absl::Time now);
  // Whether another process computes on the device. Where NVML does not say who computes, every other context counts.
  bool Contended(absl::Time now);

  const std::shared_ptr<const NvmlApi> nvml_;
  NvmlDevice device_ = nullptr;
  Telemetry last_;
  absl::Time read_ = absl::InfinitePast();
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TELEMETRY_H_
