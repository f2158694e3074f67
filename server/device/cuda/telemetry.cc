#include "server/device/cuda/telemetry.h"

#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "server/device/cuda/contention.h"

namespace attune::device::cuda {
namespace {

// NVML's own figures are no fresher, and a question takes it as long as a sample.
constexpr absl::Duration kPeriod = absl::Milliseconds(20);
// NVML samples each process some times a second.
constexpr absl::Duration kLately = absl::Seconds(1);

}  // namespace

TelemetryReader::TelemetryReader(std::shared_ptr<const NvmlApi> nvml, const std::string& uuid)
    : nvml_(std::move(nvml)) {
  if (nvml_ != nullptr) device_ = nvml_->FindDevice(uuid);
}

Telemetry TelemetryReader::Read() {
  if (device_ == nullptr) return {};
  if (const absl::Time now = absl::Now(); now >= read_ + kPeriod) {
    read_ = now;
    last_ = ReadNow(now);
  }
  return last_;
}

absl::StatusOr<double> TelemetryReader::ReadJoules() const {
  const std::optional<double> joules = nvml_ != nullptr ? nvml_->JoulesOf(device_) : std::nullopt;
  if (!joules.has_value()) return absl::FailedPreconditionError("NVML does not count the energy of this device");
  return *joules;
}

Telemetry TelemetryReader::ReadNow(absl::Time now) {
  Telemetry telemetry;
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
  telemetry.contended = Contended(now);
  return telemetry;
}

bool TelemetryReader::Contended(absl::Time now) {
  if (nvml_->DeviceGetComputeProcesses == nullptr) return false;
  std::array<NvmlProcessInfo, 64> processes;
  unsigned holders = processes.size();
  const NvmlResult result = nvml_->DeviceGetComputeProcesses(device_, &holders, processes.data());
  const bool shared = result == kNvmlInsufficientSize || (result == kNvmlSuccess && holders > 1);
  if (result != kNvmlSuccess || !shared || nvml_->DeviceGetProcessUtilization == nullptr) return shared;
  std::array<NvmlProcessUtilization, 512> samples;
  unsigned count = samples.size();
  if (nvml_->DeviceGetProcessUtilization(device_, samples.data(), &count, absl::ToUnixMicros(now - kLately)) ==
      kNvmlSuccess) {
    return AnotherComputes(absl::MakeSpan(processes.data(), holders), absl::MakeSpan(samples.data(), count),
                           static_cast<unsigned>(getpid()));
  }
  return shared;
}

}  // namespace attune::device::cuda
