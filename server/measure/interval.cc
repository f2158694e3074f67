// The median's order-statistic interval, and what it says about two variants.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "server/measure/measure.h"

namespace attune::measure {
namespace {

constexpr double kConfidence = 0.95;

// How many samples may be left out at each end: the largest r such that [x(r+1), x(n-r)] covers the median with at
// least kConfidence, that is 2 * P(Binomial(n, 1/2) <= r) <= 1 - kConfidence. 0 when even [min, max] does not.
size_t LeftOutAtEachEnd(size_t n) {
  const double log_half_to_n = -static_cast<double>(n) * std::log(2.0);
  double log_choose = 0;  // log of n choose r
  double tail = 0;
  for (size_t r = 0; r < n; ++r) {
    tail += std::exp(log_choose + log_half_to_n);
    if (2 * tail > 1 - kConfidence) return r == 0 ? 0 : r - 1;
    log_choose += std::log(static_cast<double>(n - r)) - std::log(static_cast<double>(r + 1));
  }
  return 0;
}

}  // namespace

Interval MedianInterval(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const size_t left_out = LeftOutAtEachEnd(n);
  return {.low = samples[left_out],
          .median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2,
          .high = samples[n - 1 - left_out]};
}

Comparison Compare(const v1::Timing& candidate, const v1::Timing& incumbent) {
  if (candidate.high_us() < incumbent.low_us()) return Comparison::kFaster;
  if (candidate.low_us() > incumbent.high_us()) return Comparison::kSlower;
  return Comparison::kTie;
}

}  // namespace attune::measure
