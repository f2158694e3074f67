#include "server/catalog/answers/predicted_time.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "server/base/device_profile.h"

namespace attune::catalog {
namespace {

// What a kernel takes that has nothing to do: the launch, and one trip through its pipeline.
constexpr double kLaunchUs = 4;
// At least so much of a time is work: next to kLaunchUs, nothing is known of the rest.
constexpr double kLeastWork = 0.3;
// Four of five times are within this factor.
constexpr double kSpread = 1.5;

// In units that only a ratio rids of: where a rate is not known, work is what the other one says.
double Work(const Launched& launched, const v1::Device& device) {
  const auto sms = static_cast<double>(std::max<int64_t>(1, device.compute_units()));
  const double flops = Flops(launched.problem);
  const double bytes = Bytes(launched.problem);
  const std::optional<double> rate = TensorFlopsPerClock(device.compute_capability());
  double work = flops;
  if (rate.has_value() && device.sm_clock_mhz() > 0 && device.memory_bandwidth_gbs() > 0) {
    const double flops_us = flops / (*rate * sms * static_cast<double>(device.sm_clock_mhz()));
    const double bytes_us = bytes / (static_cast<double>(device.memory_bandwidth_gbs()) * 1e3);
    work = std::max(flops_us, bytes_us);
  }
  const double waves = static_cast<double>(std::max<int64_t>(1, launched.ctas)) / sms;
  return work * std::ceil(waves) / waves;
}

}  // namespace

v1::PredictedTime PredictTime(const Launched& asked, double us, const Launched& timed, const v1::Device& device) {
  const double own = std::max(us - kLaunchUs, kLeastWork * us);
  const double predicted = kLaunchUs + own * Work(asked, device) / Work(timed, device);
  v1::PredictedTime time;
  time.set_us(predicted);
  time.set_low_us(predicted / kSpread);
  time.set_high_us(predicted * kSpread);
  return time;
}

}  // namespace attune::catalog
