#include "server/verify/half.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace attune::verify {
namespace {

TEST(Half, EveryF16ValueSurvivesTheWayThereAndBack) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float value = F16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(F16ToFloat(FloatToF16(value)))) << bits;
    } else {
      EXPECT_EQ(FloatToF16(value), bits);
    }
  }
}

TEST(Half, EveryBf16ValueSurvivesTheWayThereAndBack) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(value)))) << bits;
    } else {
      EXPECT_EQ(FloatToBf16(value), bits);
    }
  }
}

// IEEE 754-2019, table 3.5: largest, smallest normal and smallest subnormal of binary16.
TEST(Half, F16HasItsPublishedLimits) {
  EXPECT_EQ(F16ToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(F16ToFloat(0x0400), 0x1p-14f);
  EXPECT_EQ(F16ToFloat(0x8001), -0x1p-24f);
  EXPECT_EQ(F16ToFloat(0x7c00), std::numeric_limits<float>::infinity());
}

TEST(Half, TiesRoundToEven) {
  EXPECT_EQ(FloatToF16(1 + 0x1p-11f), 0x3c00);
  EXPECT_EQ(FloatToF16(1 + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(FloatToF16(1.5f * 0x1p-24f), 0x0002);
  EXPECT_EQ(FloatToBf16(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(FloatToBf16(1 + 3 * 0x1p-8f), 0x3f82);
}

TEST(Half, F16OverflowsToInfinityFromHalfAStepAboveItsLargest) {
  EXPECT_EQ(FloatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToF16(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToF16(-1e30f), 0xfc00);
}

}  // namespace
}  // namespace attune::verify
