// fp16 as kernels use it, with the compiler's own type.
#pragma once

#include "vectors.h"

struct __half {
  _Float16 value;
};
struct __half2 {
  __half x, y;
};

inline float __half2float(__half x) { return static_cast<float>(x.value); }
inline __half __float2half_rn(float x) { return {static_cast<_Float16>(x)}; }
inline float2 __half22float2(__half2 pair) { return {__half2float(pair.x), __half2float(pair.y)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
