#include <cmath>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "server/measure/measure.h"

namespace attune::measure {
namespace {

std::vector<double> OneTo(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// Probability that [x(low), x(high)] of n samples covers the median, counted with integers: the number of the 2^n
// equally likely patterns of "below the median" with at least `low` and at most `high - 1` below.
double Coverage(int n, int low, int high) {
  double patterns = 0;
  for (int below = low; below < high; ++below) {
    double choose = 1;
    for (int i = 0; i < below; ++i) choose = choose * (n - i) / (i + 1);
    patterns += choose;
  }
  return patterns / std::pow(2.0, n);
}

v1::Timing Between(double low, double high) {
  v1::Timing timing;
  timing.set_low_us(low);
  timing.set_median_us((low + high) / 2);
  timing.set_high_us(high);
  return timing;
}

TEST(MedianInterval, OfNothingIsZero) {
  EXPECT_EQ(MedianInterval({}).median, 0);
  EXPECT_EQ(MedianInterval({}).high, 0);
}

TEST(MedianInterval, OfFewSamplesIsTheirWholeRange) {
  for (int n = 1; n <= 5; ++n) {
    EXPECT_EQ(MedianInterval(OneTo(n)).low, 1) << n;
    EXPECT_EQ(MedianInterval(OneTo(n)).high, n) << n;
  }
}

TEST(MedianInterval, TakesTheMiddleOfAnEvenNumberOfSamples) { EXPECT_EQ(MedianInterval({4, 1, 3, 2}).median, 2.5); }

TEST(MedianInterval, DoesNotDependOnTheOrderOfTheSamples) {
  const Interval interval = MedianInterval({9, 2, 5, 1, 8, 3, 7, 4, 6});
  EXPECT_EQ(interval.low, 2);
  EXPECT_EQ(interval.median, 5);
  EXPECT_EQ(interval.high, 8);
}

// Hahn and Meeker's tables for the median at 95 %: n = 20 takes the 6th and the 15th, n = 50 the 18th and the 33rd.
TEST(MedianInterval, MatchesPublishedRanks) {
  EXPECT_EQ(MedianInterval(OneTo(20)).low, 6);
  EXPECT_EQ(MedianInterval(OneTo(20)).high, 15);
  EXPECT_EQ(MedianInterval(OneTo(50)).low, 18);
  EXPECT_EQ(MedianInterval(OneTo(50)).high, 33);
}

TEST(MedianInterval, CoversTheMedianAndNoNarrowerOneWould) {
  for (int n = 6; n <= 60; ++n) {
    const Interval interval = MedianInterval(OneTo(n));
    const int low = static_cast<int>(interval.low), high = static_cast<int>(interval.high);
    EXPECT_EQ(low + high, n + 1) << n;
    EXPECT_GE(Coverage(n, low, high), 0.95) << n;
    EXPECT_LT(Coverage(n, low + 1, high - 1), 0.95) << n;
  }
}

TEST(MedianInterval, StaysExactForManySamples) {
  const Interval interval = MedianInterval(OneTo(5000));
  // Normal approximation: 2500 -+ 1.96 * sqrt(5000) / 2.
  EXPECT_NEAR(interval.low, 2431, 2);
  EXPECT_NEAR(interval.high, 2570, 2);
}

TEST(Compare, CallsTheCandidateFasterWhenItsIntervalLiesBelow) {
  EXPECT_EQ(Compare(Between(8, 9), Between(9.1, 10)), Comparison::kFaster);
}

TEST(Compare, CallsTheCandidateSlowerWhenItsIntervalLiesAbove) {
  EXPECT_EQ(Compare(Between(10.1, 11), Between(9, 10)), Comparison::kSlower);
}

TEST(Compare, CallsTouchingIntervalsATie) {
  EXPECT_EQ(Compare(Between(8, 9), Between(9, 10)), Comparison::kTie);
  EXPECT_EQ(Compare(Between(9, 10), Between(8, 9)), Comparison::kTie);
  EXPECT_EQ(Compare(Between(9.4, 9.5), Between(9, 10)), Comparison::kTie);
}

}  // namespace
}  // namespace attune::measure
