// IEEE binary16 and bfloat16 as bit patterns, converted without branches so that loops over them vectorise.
#ifndef ATTUNE_SERVER_VERIFY_HALF_H_
#define ATTUNE_SERVER_VERIFY_HALF_H_

#include <bit>
#include <cstdint>

#include "attune/v1/problem.pb.h"

namespace attune::verify {

inline float F16ToFloat(uint16_t bits) {
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  // Rebiases the exponent by 127 - 15; the product also makes subnormals right.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  // Infinity and NaN have the largest exponent; no branch, so that loops vectorise.
  const uint32_t special = (bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
  return std::bit_cast<float>(finite | special | static_cast<uint32_t>(bits & 0x8000) << 16);
}

inline float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Rounds to nearest, ties to even.
inline uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the result is subnormal: adding 0.5 leaves its rounded bits at the bottom of the significand.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t half = magnitude < 0x38800000u ? subnormal : magnitude >= 0x477ff000u ? special : normal;
  return static_cast<uint16_t>(half | (bits >> 16 & 0x8000u));
}

inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const uint32_t quiet_nan = bits >> 16 | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

inline float ToFloat(v1::DType dtype, uint16_t bits) {
  return dtype == v1::DTYPE_BF16 ? Bf16ToFloat(bits) : F16ToFloat(bits);
}
inline uint16_t FromFloat(v1::DType dtype, float value) {
  return dtype == v1::DTYPE_BF16 ? FloatToBf16(value) : FloatToF16(value);
}

// Distance of neighbouring values around 1.
inline double UnitStep(v1::DType dtype) { return dtype == v1::DTYPE_BF16 ? 0x1p-7 : 0x1p-10; }

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_HALF_H_
