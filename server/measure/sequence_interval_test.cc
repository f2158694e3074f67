#include <vector>

#include "gtest/gtest.h"
#include "server/measure/measure.h"

namespace attune::measure {
namespace {

double Width(const Interval& interval) { return interval.high - interval.low; }

TEST(SequenceInterval, OfSamplesThatAlternateIsTheMediansOwn) {
  const std::vector<double> samples = {99, 101, 99.2, 100.8, 99.4, 100.6, 99.1, 100.9, 100};
  EXPECT_EQ(SequenceInterval(samples).low, MedianInterval(samples).low);
  EXPECT_EQ(SequenceInterval(samples).high, MedianInterval(samples).high);
}

TEST(SequenceInterval, OfSamplesThatFollowTheirNeighboursIsWider) {
  const std::vector<double> samples = {99, 99.1, 99.3, 99.4, 99.7, 100, 100.2, 100.5, 100.9, 101};
  EXPECT_EQ(SequenceInterval(samples).median, MedianInterval(samples).median);
  EXPECT_GT(Width(SequenceInterval(samples)), 4 * Width(MedianInterval(samples)));
}

TEST(SequenceInterval, GoesOverBothClocksOfADevice) {
  std::vector<double> samples;
  for (int i = 0; i < 40; ++i) samples.push_back(i % 4 == 1 ? 102 + 0.001 * i : 100 + 0.001 * i);
  EXPECT_LT(MedianInterval(samples).high, 101);
  EXPECT_GT(SequenceInterval(samples).high, 102);
}

TEST(SequenceInterval, OneOutlierIsNoSecondClock) {
  std::vector<double> samples = {100, 100.2, 99.9, 100.1, 99.8, 100.05, 99.95, 100.15, 99.85, 100.12, 99.88, 120};
  EXPECT_LT(SequenceInterval(samples).high, 101);
}

TEST(SequenceInterval, OfEqualSamplesHasNoWidth) {
  EXPECT_EQ(Width(SequenceInterval(std::vector<double>(9, 100.0))), 0);
}

}  // namespace
}  // namespace attune::measure
