// The 8-bit floating-point types of K and V (docs/problems.md) as bit patterns: e4m3, which is float8_e4m3fn, and e5m2
// (Micikevicius et al., "FP8 formats for deep learning", 2022, table 1).
#ifndef ATTUNE_SERVER_VERIFY_FLOAT8_H_
#define ATTUNE_SERVER_VERIFY_FLOAT8_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "attune/v1/problem.pb.h"
#include "server/verify/half.h"

namespace attune::verify {

inline constexpr uint8_t kFloat8NaN = 0x7f;  // of both types

inline float E4m3ToFloat(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7fu;
  // Rebiases the exponent by 127 - 7; the product also makes subnormals right.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 20) * 0x1p120f);
  const uint32_t value = magnitude == kFloat8NaN ? 0x7fc00000u : finite;
  return std::bit_cast<float>(value | static_cast<uint32_t>(bits & 0x80) << 24);
}

// Binary16 with the lower byte 0.
inline float E5m2ToFloat(uint8_t bits) { return F16ToFloat(static_cast<uint16_t>(bits << 8)); }

namespace float8 {

// Rounds to nearest, ties to even; what is larger than `largest`, a bit pattern, becomes that, as quantisers have it.
template <int kMantissaBits, int kBias>
inline uint8_t FromFloat(float value, uint32_t largest) {
  constexpr int kShift = 23 - kMantissaBits;
  constexpr uint32_t kLeastNormal = static_cast<uint32_t>(128 - kBias) << 23;
  // Its unit in the last place is the least subnormal number, 2^(1 - bias - mantissa bits).
  constexpr float kSubnormals = std::bit_cast<float>(static_cast<uint32_t>(127 + 24 - kBias - kMantissaBits) << 23);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kSubnormals) - std::bit_cast<uint32_t>(kSubnormals);
  const uint32_t normal = (magnitude - (static_cast<uint32_t>(127 - kBias) << 23) + (1u << (kShift - 1)) - 1 +
                           (magnitude >> kShift & 1u)) >>
                          kShift;
  const uint32_t finite = std::min(magnitude < kLeastNormal ? subnormal : normal, largest);
  return static_cast<uint8_t>((magnitude > 0x7f800000u ? kFloat8NaN : finite) | (bits >> 24 & 0x80u));
}

}  // namespace float8

inline uint8_t FloatToE4m3(float value) { return float8::FromFloat<3, 7>(value, 0x7e); }
inline uint8_t FloatToE5m2(float value) { return float8::FromFloat<2, 15>(value, 0x7b); }

// `dtype` is E4M3 or E5M2.
inline float Float8ToFloat(v1::DType dtype, uint8_t bits) {
  return dtype == v1::DTYPE_E5M2 ? E5m2ToFloat(bits) : E4m3ToFloat(bits);
}
inline uint8_t FloatToFloat8(v1::DType dtype, float value) {
  return dtype == v1::DTYPE_E5M2 ? FloatToE5m2(value) : FloatToE4m3(value);
}

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_FLOAT8_H_
