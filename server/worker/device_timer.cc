#include "server/worker/device_timer.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace attune::worker {
namespace {

// Long enough for a power-capped device to raise its clock again, short against a trial.
constexpr absl::Duration kPause = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<measure::Timer::Sample> DeviceTimer::Take(int runs) {
  runs_ = runs;
  const absl::StatusOr<double> seconds =
      policy_ == attune::v1::POLICY_COLD ? device_.TimeCold(*runnables_.front()) : device_.TimeHot(runnables_, runs);
  if (!seconds.ok()) return seconds.status();
  const device::Telemetry now = device_.ReadTelemetry();
  Sample sample;
  sample.us = *seconds * 1e6;
  sample.sm_clock_mhz = now.sm_clock_mhz;
  sample.power_w = now.power_w;
  sample.temperature_c = now.temperature_c;
  sample.throttle_reasons = now.throttle_reasons;
  sample.contended = now.contended;
  return sample;
}

absl::Status DeviceTimer::RunAgain() {
  if (policy_ != attune::v1::POLICY_COLD)
    return device_.TimeHot(runnables_, static_cast<int>(sets_to_check())).status();
  for (device::Runnable* runnable : runnables_.first(sets_to_check())) {
    if (absl::Status status = device_.TimeCold(*runnable).status(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

size_t DeviceTimer::sets() const {
  return policy_ == attune::v1::POLICY_COLD ? 1 : std::min(static_cast<size_t>(runs_), runnables_.size());
}

size_t DeviceTimer::sets_to_check() const { return std::min(std::max(sets(), size_t{3}), runnables_.size()); }

void DeviceTimer::Pause() { absl::SleepFor(kPause); }

}  // namespace attune::worker
