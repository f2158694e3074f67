// Clock, power, temperature and other processes of one device, from NVML.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TELEMETRY_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TELEMETRY_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/device/cuda/nvml_api.h"
#include "server/device/device.h"

namespace attune::device::cuda {

class TelemetryReader {
 public:
  // `nvml` may be null: everything read is then zero. `uuid` as in v1::Device.
  TelemetryReader(std::shared_ptr<const NvmlApi> nvml, const std::string& uuid);

  // Called while this process holds a context on the device.
  Telemetry Read();

 private:
  // Whether another process computes on the device, asked at most every kProcessPeriod, for it is slow. Where NVML does
  // not say who computes, every other context counts.
  bool Contended();

  const std::shared_ptr<const NvmlApi> nvml_;
  NvmlDevice device_ = nullptr;
  bool contended_ = false;
  absl::Time processes_read_ = absl::InfinitePast();
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TELEMETRY_H_
