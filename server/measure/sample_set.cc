#include "server/measure/sample_set.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "server/measure/quantiles.h"

namespace attune::measure {
namespace {

constexpr int kLooks[] = {7, 11, 17, 25, 37, 55};
// Of the width allowed, at 17 samples; it grows with their root.
constexpr double kStrictness = 0.6;
constexpr double kStrictUntil = 17;

// Upper median of `member` over `samples`, which are not empty.
template <typename T>
T MedianOf(const std::vector<Timer::Sample>& samples, T Timer::Sample::*member) {
  std::vector<T> values;
  values.reserve(samples.size());
  for (const Timer::Sample& sample : samples) values.push_back(sample.*member);
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

SampleSet::SampleSet(const Options& options) : options_(options) {}

bool SampleSet::BelowFloor(const Timer::Sample& sample) const {
  // A clock of 0 is one that nobody could read.
  return sample.sm_clock_mhz > 0 && sample.sm_clock_mhz < options_.clock_floor * highest_clock_mhz_;
}

bool SampleSet::Add(const Timer::Sample& sample) {
  ++taken_;
  round_.push_back(sample);
  highest_clock_mhz_ = std::max(highest_clock_mhz_, sample.sm_clock_mhz);
  const bool below = BelowFloor(sample);
  below_in_a_row_ = below ? below_in_a_row_ + 1 : 0;
  if (below_in_a_row_ == kSustained) {
    before_round_ += round_.size() - kSustained;
    round_.erase(round_.begin(), round_.end() - kSustained);
    below_in_a_row_ = 0;
    highest_clock_mhz_ = 0;
    for (const Timer::Sample& kept : round_) highest_clock_mhz_ = std::max(highest_clock_mhz_, kept.sm_clock_mhz);
  }
  Judge();
  return !below;
}

void SampleSet::Judge() {
  accepted_.clear();
  std::copy_if(round_.begin(), round_.end(), std::back_inserter(accepted_),
               [this](const Timer::Sample& sample) { return !BelowFloor(sample); });
  const auto contended = [](const Timer::Sample& sample) { return sample.contended; };
  const auto count = std::count_if(accepted_.begin(), accepted_.end(), contended);
  without_contended_ = 2 * static_cast<size_t>(count) < accepted_.size();
  if (without_contended_) {
    accepted_.erase(std::remove_if(accepted_.begin(), accepted_.end(), contended), accepted_.end());
  }
  std::vector<double> us;
  us.reserve(accepted_.size());
  for (const Timer::Sample& sample : accepted_) us.push_back(sample.us);
  interval_ = IntervalOf(us);
  narrow_ = IsNarrow(us);
}

Interval SampleSet::IntervalOf(const std::vector<double>& us) const {
  Interval interval = SequenceInterval(us);
  const double step_us = accepted_.empty() ? 0 : accepted_.front().step_us;
  interval.low = std::max(interval.low - step_us / 2, 0.0);
  interval.high += step_us / 2;
  return interval;
}

std::vector<double> SampleSet::ByOrder() const {
  std::vector<double> us(before_round_, 0.0);
  for (const Timer::Sample& sample : round_) {
    const bool counts = !BelowFloor(sample) && !(without_contended_ && sample.contended);
    us.push_back(counts ? sample.us : 0);
  }
  return us;
}

bool SampleSet::IsNarrow(const std::vector<double>& us) const {
  const auto* const end = std::upper_bound(std::begin(kLooks), std::end(kLooks), static_cast<int>(us.size()));
  if (end == std::begin(kLooks) || static_cast<int>(us.size()) < options_.min_samples) return false;
  const int look = *(end - 1);
  const Interval then =
      look == static_cast<int>(us.size()) ? interval_ : IntervalOf(std::vector<double>(us.begin(), us.begin() + look));
  const double strictness = std::min(1.0, kStrictness * std::sqrt(look / kStrictUntil));
  return then.high - then.low < strictness * options_.relative_width * then.median;
}

v1::Timing SampleSet::ToTiming() const {
  v1::Timing timing;
  timing.set_samples(accepted());
  timing.set_discarded(taken_ - accepted());
  if (accepted_.empty()) return timing;
  timing.set_median_us(interval_.median);
  timing.set_low_us(interval_.low);
  timing.set_high_us(interval_.high);
  timing.set_settled(settled());
  timing.set_sm_clock_mhz(MedianOf(accepted_, &Timer::Sample::sm_clock_mhz));
  timing.set_power_w(MedianOf(accepted_, &Timer::Sample::power_w));
  timing.set_temperature_c(MedianOf(accepted_, &Timer::Sample::temperature_c));
  double min_us = accepted_.front().us;
  std::vector<double> us;
  us.reserve(accepted_.size());
  int64_t throttle_reasons = 0;
  bool contended = false;
  for (const Timer::Sample& sample : accepted_) {
    min_us = std::min(min_us, sample.us);
    us.push_back(sample.us);
    throttle_reasons |= sample.throttle_reasons;
    contended |= sample.contended;
  }
  timing.set_min_us(min_us);
  SetQuantiles(std::move(us), timing);
  timing.set_throttle_reasons(throttle_reasons);
  timing.set_contended(contended);
  return timing;
}

}  // namespace attune::measure
