// Elements of K and V: as Q's, or of 8 bits with KV_DTYPE (1 e4m3, 2 e5m2).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/kv_element.cuh"

namespace emulation {

#if KV_DTYPE

// By the definition: sign, exponent, mantissa, with subnormals. All ones are NaN, and in e5m2 any of the last exponent
// but infinity.
inline float ToFloat(KvElement bits) {
  constexpr int kMantissa = KV_DTYPE == 1 ? 3 : 2;
  constexpr int kBias = KV_DTYPE == 1 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> kMantissa;
  const int mantissa = bits & ((1 << kMantissa) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (KV_DTYPE == 1 && (bits & 0x7f) == 0x7f) return NAN;
  if (KV_DTYPE == 2 && exponent == 31) return mantissa ? NAN : sign * INFINITY;
  const int significand = exponent > 0 ? mantissa + (1 << kMantissa) : mantissa;
  return sign * std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - kBias - kMantissa);
}

// The nearest.
inline KvElement ToKvElement(float x) {
  if (std::isnan(x)) return 0x7f;
  int nearest = 0;
  for (int bits = 0; bits < 256; ++bits) {
    const float value = ToFloat(static_cast<KvElement>(bits));
    if (std::isfinite(value) && std::abs(value - x) < std::abs(ToFloat(static_cast<KvElement>(nearest)) - x))
      nearest = bits;
  }
  return static_cast<KvElement>(nearest);
}

#else

inline KvElement ToKvElement(float x) { return ToElement(x); }

#endif

}  // namespace emulation
