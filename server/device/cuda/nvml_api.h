// The part of NVML that attune calls; see driver_api.h for why it is declared here. Everything NVML says is optional:
// without it telemetry is zero.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_NVML_API_H_
#define ATTUNE_SERVER_DEVICE_CUDA_NVML_API_H_

#include <memory>
#include <optional>
#include <string>

#include "server/device/cuda/dynamic_library.h"

namespace attune::device::cuda {

using NvmlDevice = void*;  // nvmlDevice_t

enum NvmlResult : int {
  kNvmlSuccess = 0,
  kNvmlInsufficientSize = 7,
};

enum NvmlClock : int {
  kNvmlClockSm = 1,
  kNvmlClockMemory = 2,
};
enum NvmlTemperatureSensor : int { kNvmlTemperatureGpu = 0 };

struct NvmlProcessInfo {  // nvmlProcessInfo_t since NVML 11
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};

struct NvmlProcessUtilization {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long time_us;  // of the host's clock
  unsigned sm_percent;
  unsigned memory_percent;
  unsigned encoder_percent;
  unsigned decoder_percent;
};

class NvmlApi {
 public:
  // Null when the host has no NVML or it does not start.
  static std::shared_ptr<const NvmlApi> Load();
  ~NvmlApi();
  NvmlApi(const NvmlApi&) = delete;
  NvmlApi& operator=(const NvmlApi&) = delete;

  // "580.159.04"; empty when unknown.
  std::string DriverVersion() const;
  // Null when NVML does not know it. `uuid` as "GPU-...".
  NvmlDevice FindDevice(const std::string& uuid) const;
  // That the card has taken since the driver was loaded; nullopt where NVML does not count them.
  std::optional<double> JoulesOf(NvmlDevice device) const;

  // Null where this NVML has none of them.
  NvmlResult (*DeviceGetClockInfo)(NvmlDevice device, NvmlClock clock, unsigned* mhz) = nullptr;
  NvmlResult (*DeviceGetMaxClockInfo)(NvmlDevice device, NvmlClock clock, unsigned* mhz) = nullptr;
  NvmlResult (*DeviceGetPowerUsage)(NvmlDevice device, unsigned* milliwatts) = nullptr;
  NvmlResult (*DeviceGetTotalEnergy)(NvmlDevice device, unsigned long long* millijoules) = nullptr;
  NvmlResult (*DeviceGetTemperature)(NvmlDevice device, NvmlTemperatureSensor sensor, unsigned* celsius) = nullptr;
  NvmlResult (*DeviceGetThrottleReasons)(NvmlDevice device, unsigned long long* reasons) = nullptr;
  NvmlResult (*DeviceGetComputeProcesses)(NvmlDevice device, unsigned* count, NvmlProcessInfo* processes) = nullptr;
  // Samples later than `since_us`.
  NvmlResult (*DeviceGetProcessUtilization)(NvmlDevice device, NvmlProcessUtilization* samples, unsigned* count,
                                            unsigned long long since_us) = nullptr;

 private:
  explicit NvmlApi(DynamicLibrary library) : library_(std::move(library)) {}

  DynamicLibrary library_;
  NvmlResult (*Shutdown)() = nullptr;  // null until initialized
  NvmlResult (*SystemGetDriverVersion)(char* version, unsigned length) = nullptr;
  NvmlResult (*DeviceGetHandleByUuid)(const char* uuid, NvmlDevice* device) = nullptr;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_NVML_API_H_
