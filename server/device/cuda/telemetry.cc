#include "server/device/cuda/telemetry.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "server/device/cuda/contention.h"

namespace attune::device::cuda {
namespace {

constexpr absl::Duration kProcessPeriod = absl::Milliseconds(20);
// NVML samples each process some times a second.
constexpr absl::Duration kLately = absl::Seconds(1);

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
  std::array<NvmlProcessInfo, 64> processes;
  unsigned holders = processes.size();
  const NvmlResult result = nvml_->DeviceGetComputeProcesses(device_, &holders, processes.data());
  contended_ = result == kNvmlInsufficientSize || (result == kNvmlSuccess && holders > 1);
  if (result != kNvmlSuccess || !contended_ || nvml_->DeviceGetProcessUtilization == nullptr) return contended_;
  std::array<NvmlProcessUtilization, 512> samples;
  unsigned count = samples.size();
  if (nvml_->DeviceGetProcessUtilization(device_, samples.data(), &count, absl::ToUnixMicros(now - kLately)) ==
      kNvmlSuccess) {
    contended_ = AnotherComputes(absl::MakeSpan(processes.data(), holders), absl::MakeSpan(samples.data(), count),
                                 static_cast<unsigned>(getpid()));
  }
  return contended_;
}

}  // namespace attune::device::cuda
