#include "server/worker/device_timer.h"

#include <algorithm>

#include "absl/random/distributions.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace attune::worker {
namespace {

// Long enough for a power-capped device to raise its clock again, short against a trial.
constexpr absl::Duration kPause = absl::Milliseconds(20);

// A graph of one run that follows other work takes 5 to 10 us longer than when it is replayed at once (an H200,
// docs/benchmarks/2026-11-27-h200-quick-look.md): beside so long a run that is little.
constexpr double kLongRunSeconds = 400e-6;

}  // namespace

absl::StatusOr<double> DeviceTimer::TakeHot(int runs) {
  const absl::StatusOr<double> seconds = device_.TimeHot(runnables_.first(most_sets()), runs);
  if (!seconds.ok() || runs > 1 || *seconds >= kLongRunSeconds) return seconds;
  return device_.TimeHot(runnables_.first(most_sets()), runs);
}

absl::StatusOr<measure::Timer::Sample> DeviceTimer::Take(int runs) {
  runs_ = runs;
  const bool is_cold = policy_ == attune::v1::POLICY_COLD;
  const absl::StatusOr<double> seconds = is_cold ? device_.TimeCold(*runnables_.front()) : TakeHot(runs);
  if (!seconds.ok()) return seconds.status();
  const device::Telemetry now = device_.ReadTelemetry();
  Sample sample;
  sample.us = *seconds * 1e6;
  if (is_cold) {
    // Anywhere within the clock's step: short runs would seem to take the very same time, or whole steps more.
    sample.step_us = absl::ToDoubleMicroseconds(device_.ColdResolution());
    sample.us += absl::Uniform(absl::IntervalClosed, random_, -0.5, 0.5) * std::min(sample.step_us, sample.us);
  }
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

size_t DeviceTimer::sets() const { return std::min(static_cast<size_t>(runs_), most_sets()); }

size_t DeviceTimer::most_sets() const { return policy_ == attune::v1::POLICY_HOT ? runnables_.size() : 1; }

size_t DeviceTimer::sets_to_check() const { return std::min(std::max(sets(), size_t{3}), runnables_.size()); }

void DeviceTimer::Pause() { absl::SleepFor(kPause); }

}  // namespace attune::worker
