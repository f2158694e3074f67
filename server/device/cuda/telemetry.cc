#include "server/device/cuda/telemetry.h"

#include <array>
#include <utility>

#include "absl/time/clock.h"

namespace attune::device::cuda {
namespace {

constexpr absl::Duration kProcessPeriod = absl::Milliseconds(20);

}  // namespace

TelemetryReader::TelemetryReader(std::shared_ptr<const NvmlApi> nvml, const std::string& uuid)
    : nvml_(std::move(nvml)) {
  if (nvml_ != nullptr) device_ = nvml_->FindDevice(uuid);
}

Telemetry TelemetryReader::Read() {
  Telemetry telemetry;
  if (device_ == nullptr) return telemetry;
  unsigned value = 0;
  if (nvml_->DeviceGetClockInfo != nullptr &&
      nvml_->DeviceGetClockInfo(device_, kNvmlClockSm, &value) == kNvmlSuccess) {
    telemetry.sm_clock_mhz = static_cast<int>(value);
  }
  if (nvml_->DeviceGetPowerUsage != nullptr && nvml_->DeviceGetPowerUsage(device_, &value) == kNvmlSuccess) {
    telemetry.power_w = value / 1000.0;
  }
  if (nvml_->DeviceGetTemperature != nullptr &&
      nvml_->DeviceGetTemperature(device_, kNvmlTemperatureGpu, &value) == kNvmlSuccess) {
    telemetry.temperature_c = static_cast<int>(value);
  }
  unsigned long long reasons = 0;
  if (nvml_->DeviceGetThrottleReasons != nullptr &&
      nvml_->DeviceGetThrottleReasons(device_, &reasons) == kNvmlSuccess) {
    telemetry.throttle_reasons = static_cast<int64_t>(reasons);
  }
  telemetry.contended = Contended();
  return telemetry;
}

bool TelemetryReader::Contended() {
  const absl::Time now = absl::Now();
  if (nvml_->DeviceGetComputeProcesses == nullptr || now < processes_read_ + kProcessPeriod) return contended_;
  processes_read_ = now;
  std::array<NvmlProcessInfo, 8> processes;
  unsigned count = processes.size();
  const NvmlResult result = nvml_->DeviceGetComputeProcesses(device_, &count, processes.data());
  contended_ = result == kNvmlInsufficientSize || (result == kNvmlSuccess && count > 1);
  return contended_;
}

}  // namespace attune::device::cuda
