#include "client/cli/history_times.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Timing TimingOf(double low, double median, double high) {
  v1::Timing timing;
  timing.set_low_us(low);
  timing.set_median_us(median);
  timing.set_high_us(high);
  return timing;
}

v1::Retiming RetimingOf(double median, const std::string& driver = "580.1", const std::string& variant = "a:B=1") {
  v1::Retiming retiming;
  retiming.set_device_id("cuda:0");
  retiming.set_policy(v1::POLICY_HOT);
  retiming.set_variant(variant);
  *retiming.mutable_timing() = TimingOf(median - 1, median, median + 1);
  retiming.mutable_dependencies()->set_driver(driver);
  retiming.set_count(1);
  return retiming;
}

TEST(PlotLine, MarksTheMedianWithinItsInterval) {
  EXPECT_EQ(PlotLine(TimingOf(12, 14, 16), 10, 20, 11), "  --*--    ");
  EXPECT_EQ(PlotLine(TimingOf(10, 10, 10), 10, 20, 11), "*          ");
  EXPECT_EQ(PlotLine(TimingOf(20, 20, 20), 10, 20, 11), "          *");
}

TEST(PlotLine, KeepsToItsScaleWhateverItIsGiven) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(PlotLine(TimingOf(1, 5, 99), 10, 20, 5), "*----");
  EXPECT_EQ(PlotLine(TimingOf(nan, 20, nan), 10, 20, 5), "    *");
  EXPECT_EQ(PlotLine(TimingOf(0, 15, 0), 10, 20, 5), "  *  ") << "without an interval";
  EXPECT_EQ(PlotLine(TimingOf(10, 10, 10), 10, 10, 5), "") << "all are equal: no scale";
  EXPECT_EQ(PlotLine(TimingOf(12, 14, 16), 10, 20, 0), "");
}

TEST(WhatChanged, NamesDriverToolchainVariantAndSources) {
  EXPECT_EQ(WhatChanged(RetimingOf(40), RetimingOf(41)), "");
  EXPECT_EQ(WhatChanged(RetimingOf(40, "580.2"), RetimingOf(40)), "driver 580.1 to 580.2");
  v1::Retiming other = RetimingOf(40, "580.1", "b:B=1");
  other.mutable_dependencies()->set_source_hash("of b");
  EXPECT_EQ(WhatChanged(other, RetimingOf(40)), "variant") << "whose sources are others anyway";
  v1::Retiming rebuilt = RetimingOf(40);
  rebuilt.mutable_dependencies()->set_source_hash("two");
  rebuilt.mutable_dependencies()->set_toolchain("nvrtc 13.1");
  EXPECT_EQ(WhatChanged(rebuilt, RetimingOf(40)), "toolchain  to nvrtc 13.1, sources");
}

TEST(TimesTable, IsOldestFirstAndComparesEachWithTheOneBeforeOfItsCard) {
  v1::Retiming sister = RetimingOf(30, "579.0");
  sister.set_device_id("cuda:1");
  const std::string text = TimesTable({RetimingOf(44, "580.2"), sister, RetimingOf(40)}).Render(0, false);
  EXPECT_LT(text.find("40.00"), text.find("44.00"));
  EXPECT_THAT(text, HasSubstr("driver 580.1 to 580.2"));
  EXPECT_THAT(text, Not(HasSubstr("579.0"))) << "the sister's first";
  EXPECT_THAT(text, HasSubstr("29.00 .. 45.00")) << "one scale for all";
  EXPECT_THAT(text, HasSubstr("cuda:1"));
}

}  // namespace
}  // namespace attune::cli
