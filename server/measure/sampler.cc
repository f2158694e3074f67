#include "server/measure/sampler.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace attune::measure {
namespace {

constexpr int kMaxRuns = 1000;
constexpr int kMaxWarmUps = 10;
// Two warm-up samples that differ by less than this agree.
constexpr double kWarm = 0.05;
// Warming up takes at most this part of max_time: one sample of a slow sampler warms it enough.
constexpr double kWarmUpShare = 0.25;

}  // namespace

Sampler::Sampler(Timer& timer, v1::Policy policy, const Options& options)
    : timer_(timer), policy_(policy), options_(options), samples_(options) {
  if (options_.likely_us > 0) runs_ = RunsFor(options_.likely_us);
}

absl::StatusOr<Timer::Sample> Sampler::Take() {
  absl::StatusOr<Timer::Sample> sample = timer_.Take(runs_);
  if (sample.ok() && !(std::isfinite(sample->us) && sample->us > 0)) {
    return absl::InternalError(absl::StrCat("a sample took ", sample->us, " us; it must be above 0"));
  }
  return sample;
}

int Sampler::RunsFor(double us) const {
  if (policy_ == v1::POLICY_COLD) return 1;
  const double runs = absl::ToDoubleMicroseconds(options_.sample_time) / us;
  return static_cast<int>(std::clamp(std::ceil(runs), 1.0, static_cast<double>(kMaxRuns)));
}

absl::Status Sampler::WarmUp() {
  const absl::Time until = options_.now() + kWarmUpShare * options_.max_time;
  double previous_us = 0;
  for (int i = 0; i < kMaxWarmUps; ++i) {
    absl::StatusOr<Timer::Sample> sample = Take();
    if (!sample.ok()) return sample.status();
    // A short graph overstates a run's time, and so asks for too few runs: lengthen it until it is long enough.
    const int wanted = RunsFor(sample->us);
    const bool sized = wanted <= 2 * runs_ && runs_ <= 2 * wanted;
    const bool warm = std::abs(sample->us - previous_us) <= kWarm * sample->us;
    if (!sized) runs_ = wanted;
    if (sized && (warm || options_.now() >= until)) break;
    previous_us = sample->us;
  }
  return absl::OkStatus();
}

absl::Status Sampler::TakeSample() {
  absl::StatusOr<Timer::Sample> sample = Take();
  if (!sample.ok()) return sample.status();
  if (!samples_.Add(*sample)) timer_.Pause();
  return absl::OkStatus();
}

bool Sampler::finished() const {
  return samples_.settled() || samples_.accepted() >= options_.max_samples ||
         samples_.taken() >= 2 * options_.max_samples;
}

}  // namespace attune::measure
