#include "server/verify/float8.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace attune::verify {
namespace {

struct Format {
  v1::DType dtype;
  int mantissa_bits, bias;
  uint8_t largest;

  // By the definition of a floating-point number.
  double Value(int magnitude) const {
    const int exponent = magnitude >> mantissa_bits;
    const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                         : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  }
};
constexpr Format kE4m3 = {v1::DTYPE_E4M3, 3, 7, 0x7e};
constexpr Format kE5m2 = {v1::DTYPE_E5M2, 2, 15, 0x7b};

TEST(Float8, EveryFiniteElementHasItsValue) {
  for (const Format& format : {kE4m3, kE5m2}) {
    for (int magnitude = 0; magnitude <= format.largest; ++magnitude) {
      EXPECT_EQ(Float8ToFloat(format.dtype, static_cast<uint8_t>(magnitude)), format.Value(magnitude)) << magnitude;
      const float negative = Float8ToFloat(format.dtype, static_cast<uint8_t>(magnitude | 0x80));
      EXPECT_EQ(negative, -format.Value(magnitude)) << magnitude;
      EXPECT_TRUE(std::signbit(negative)) << magnitude;
    }
  }
}

// Table 1 of the paper.
TEST(Float8, HasItsPublishedLimits) {
  EXPECT_EQ(E4m3ToFloat(0x7e), 448.0f);
  EXPECT_EQ(E4m3ToFloat(0x08), 0x1p-6f);
  EXPECT_EQ(E4m3ToFloat(0x01), 0x1p-9f);
  EXPECT_EQ(E5m2ToFloat(0x7b), 57344.0f);
  EXPECT_EQ(E5m2ToFloat(0x04), 0x1p-14f);
  EXPECT_EQ(E5m2ToFloat(0x01), 0x1p-16f);
}

TEST(Float8, E4m3HasOneNaNOfEachSignAndNoInfinity) {
  for (const uint8_t bits : {0x7f, 0xff}) EXPECT_TRUE(std::isnan(E4m3ToFloat(bits)));
}

TEST(Float8, E5m2HasTheSpecialValuesOfIeeeTypes) {
  EXPECT_EQ(E5m2ToFloat(0x7c), HUGE_VALF);
  EXPECT_EQ(E5m2ToFloat(0xfc), -HUGE_VALF);
  for (const uint8_t bits : {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff}) EXPECT_TRUE(std::isnan(E5m2ToFloat(bits)));
}

TEST(Float8, EveryValueSurvivesTheWayThereAndBack) {
  for (const Format& format : {kE4m3, kE5m2}) {
    for (int magnitude = 0; magnitude <= format.largest; ++magnitude) {
      for (const uint8_t bits : {static_cast<uint8_t>(magnitude), static_cast<uint8_t>(magnitude | 0x80)}) {
        EXPECT_EQ(FloatToFloat8(format.dtype, Float8ToFloat(format.dtype, bits)), bits);
      }
    }
    EXPECT_TRUE(std::isnan(Float8ToFloat(format.dtype, FloatToFloat8(format.dtype, std::nanf("")))));
  }
}

TEST(Float8, RoundsToTheNearestAndTiesToEven) {
  for (const Format& format : {kE4m3, kE5m2}) {
    for (int below = 0; below < format.largest; ++below) {
      const float middle = static_cast<float>((format.Value(below) + format.Value(below + 1)) / 2);
      EXPECT_EQ(FloatToFloat8(format.dtype, middle), below % 2 == 0 ? below : below + 1) << below;
      EXPECT_EQ(FloatToFloat8(format.dtype, std::nextafter(middle, 0.0f)), below) << below;
      EXPECT_EQ(FloatToFloat8(format.dtype, std::nextafter(middle, HUGE_VALF)), below + 1) << below;
    }
  }
}

TEST(Float8, WhatIsTooLargeBecomesTheLargest) {
  for (const Format& format : {kE4m3, kE5m2}) {
    for (const float value : {static_cast<float>(2 * format.Value(format.largest)), 1e30f, HUGE_VALF}) {
      EXPECT_EQ(FloatToFloat8(format.dtype, value), format.largest);
      EXPECT_EQ(FloatToFloat8(format.dtype, -value), format.largest | 0x80);
    }
  }
}

}  // namespace
}  // namespace attune::verify
