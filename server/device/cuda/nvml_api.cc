#include "server/device/cuda/nvml_api.h"

#include <utility>

#include "absl/status/statusor.h"

namespace attune::device::cuda {

std::shared_ptr<const NvmlApi> NvmlApi::Load() {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open("libnvidia-ml.so.1");
  if (!library.ok()) return nullptr;
  std::shared_ptr<NvmlApi> api(new NvmlApi(*std::move(library)));
  const DynamicLibrary& nvml = api->library_;
  NvmlResult (*init)() = nullptr;
  if (!nvml.Find("nvmlInit_v2", &init) || init() != kNvmlSuccess) return nullptr;
  nvml.Find("nvmlShutdown", &api->Shutdown);
  nvml.Find("nvmlSystemGetDriverVersion", &api->SystemGetDriverVersion);
  nvml.Find("nvmlDeviceGetHandleByUUID", &api->DeviceGetHandleByUuid);
  nvml.Find("nvmlDeviceGetClockInfo", &api->DeviceGetClockInfo);
  nvml.Find("nvmlDeviceGetMaxClockInfo", &api->DeviceGetMaxClockInfo);
  nvml.Find("nvmlDeviceGetPowerUsage", &api->DeviceGetPowerUsage);
  nvml.Find("nvmlDeviceGetTotalEnergyConsumption", &api->DeviceGetTotalEnergy);
  nvml.Find("nvmlDeviceGetTemperature", &api->DeviceGetTemperature);
  // Renamed in 12.2; the mask is the same.
  if (!nvml.Find("nvmlDeviceGetCurrentClocksEventReasons", &api->DeviceGetThrottleReasons)) {
    nvml.Find("nvmlDeviceGetCurrentClocksThrottleReasons", &api->DeviceGetThrottleReasons);
  }
  nvml.Find("nvmlDeviceGetComputeRunningProcesses_v3", &api->DeviceGetComputeProcesses);
  nvml.Find("nvmlDeviceGetProcessUtilization", &api->DeviceGetProcessUtilization);
  return api;
}

NvmlApi::~NvmlApi() {
  if (Shutdown != nullptr) Shutdown();
}

std::string NvmlApi::DriverVersion() const {
  char version[96] = "";
  if (SystemGetDriverVersion == nullptr || SystemGetDriverVersion(version, sizeof version) != kNvmlSuccess) return "";
  return version;
}

NvmlDevice NvmlApi::FindDevice(const std::string& uuid) const {
  NvmlDevice device = nullptr;
  if (DeviceGetHandleByUuid == nullptr || DeviceGetHandleByUuid(uuid.c_str(), &device) != kNvmlSuccess) return nullptr;
  return device;
}

std::optional<double> NvmlApi::JoulesOf(NvmlDevice device) const {
  unsigned long long millijoules = 0;
  if (device == nullptr || DeviceGetTotalEnergy == nullptr ||
      DeviceGetTotalEnergy(device, &millijoules) != kNvmlSuccess) {
    return std::nullopt;
  }
  return static_cast<double>(millijoules) / 1000.0;
}

}  // namespace attune::device::cuda
