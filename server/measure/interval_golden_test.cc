// The median's interval on the vectors that the bench's Python shares.
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "server/measure/measure.h"
#include "tests/golden/golden.h"

namespace attune::measure {
namespace {

TEST(GoldenMedianInterval, TakesTheRanks) {
  for (const auto& vector : Golden("median_interval", "ranks")) {
    const size_t count = vector["samples"];
    const double left_out = vector["left_out"];
    std::vector<double> samples(count);
    std::iota(samples.begin(), samples.end(), 1.0);
    const Interval interval = MedianInterval(samples);
    EXPECT_EQ(interval.low, 1 + left_out) << count;
    EXPECT_EQ(interval.high, static_cast<double>(count) - left_out) << count;
  }
}

TEST(GoldenMedianInterval, IsThatOfTheSamples) {
  for (const auto& vector : Golden("median_interval", "intervals")) {
    const Interval interval = MedianInterval(vector["samples"].get<std::vector<double>>());
    EXPECT_EQ(interval.low, vector["low"].get<double>()) << vector;
    EXPECT_EQ(interval.median, vector["median"].get<double>()) << vector;
    EXPECT_EQ(interval.high, vector["high"].get<double>()) << vector;
  }
}

}  // namespace
}  // namespace attune::measure
