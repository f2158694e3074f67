// The median's interval of samples that are not independent.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "server/measure/measure.h"
#include "server/measure/student.h"

namespace attune::measure {
namespace {

// What few samples cannot tell from a trend; it widens 4.4 times and more.
constexpr double kMostCorrelation = 0.9;
constexpr size_t kFewestToCorrelate = 5;
// Two clusters: a gap of this part of the range, with this part of the samples at least on either side.
constexpr double kGap = 0.3;
constexpr size_t kMinority = 6;  // a sixth

// Lag-1 autocorrelation. The estimate is too low by about (1 + 4 r) / n, which is corrected (Kendall, Biometrika 41,
// 1954, "Note on bias in the estimation of autocorrelation").
double Correlation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double products = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) products += (values[i] - mean) * (values[i - 1] - mean);
  }
  if (squares <= 0) return 0;
  const double raw = products / squares;
  return raw <= 0 ? 0 : std::min(kMostCorrelation, (n * raw + 1) / (n - 4));
}

// Correlated samples are worth `effective` independent ones, whose own spread is known the less the fewer they are.
double FewerSamples(size_t count, double effective) {
  const auto freedom = static_cast<size_t>(std::max(2.0, effective - 1));
  return std::max(1.0, StudentQuantile(Tail::k2_5, freedom) / StudentQuantile(Tail::k2_5, count - 1));
}

}  // namespace

Interval SequenceInterval(const std::vector<double>& in_order) {
  Interval interval = MedianInterval(in_order);
  const size_t count = in_order.size();
  if (count < kFewestToCorrelate) return interval;
  const double r = Correlation(in_order);
  const double inflation = (1 + r) / (1 - r);
  const double wider = std::sqrt(inflation) * FewerSamples(count, static_cast<double>(count) / inflation);
  interval.low = std::max(0.0, interval.median - wider * (interval.median - interval.low));
  interval.high = interval.median + wider * (interval.high - interval.median);

  std::vector<double> sorted = in_order;
  std::sort(sorted.begin(), sorted.end());
  size_t split = 1;
  for (size_t i = 2; i < count; ++i) {
    if (sorted[i] - sorted[i - 1] > sorted[split] - sorted[split - 1]) split = i;
  }
  const bool apart = sorted[split] - sorted[split - 1] > kGap * (sorted.back() - sorted.front());
  if (apart && kMinority * std::min(split, count - split) >= count) {
    interval.low = std::min(interval.low, sorted[split / 2]);
    interval.high = std::max(interval.high, sorted[split + (count - split) / 2]);
  }
  return interval;
}

}  // namespace attune::measure
