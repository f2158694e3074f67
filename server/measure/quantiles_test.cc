#include "server/measure/quantiles.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::measure {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

v1::Timing Of(std::vector<double> us) {
  v1::Timing timing;
  timing.add_quantiles_us(1);
  SetQuantiles(std::move(us), timing);
  return timing;
}

TEST(SetQuantiles, OfNoSamplesAreNone) { EXPECT_THAT(Of({}).quantiles_us(), IsEmpty()); }

TEST(SetQuantiles, OfOneSampleAreThatSample) {
  EXPECT_EQ(Of({7}).quantiles_us_size(), kQuantiles);
  EXPECT_THAT(Of({7}).quantiles_us(), Each(7));
}

TEST(SetQuantiles, GoFromTheLeastToTheGreatestInterpolatedBetween) {
  // As numpy.quantile([10, 20, 30, 50], [0, 1/32, 8/32, 16/32, 24/32, 31/32, 1]).
  const v1::Timing timing = Of({50, 10, 30, 20});
  const std::pair<int, double> some[] = {{0, 10}, {1, 10.9375}, {8, 17.5}, {16, 25}, {24, 35}, {31, 48.125}, {32, 50}};
  for (const auto& [i, us] : some) EXPECT_FLOAT_EQ(timing.quantiles_us(i), us) << i;
}

}  // namespace
}  // namespace attune::measure
