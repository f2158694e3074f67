// The element type of Q, K, V and O, and its way to and from fp32.
#pragma once

#if IS_BF16
#include <cuda_bf16.h>
using Element = __nv_bfloat16;
using Element2 = __nv_bfloat162;
__device__ inline float2 ToFloat2(Element2 pair) { return __bfloat1622float2(pair); }
__device__ inline Element2 ToElement2(float x, float y) { return __floats2bfloat162_rn(x, y); }
__device__ inline float ToFloat(Element x) { return __bfloat162float(x); }
__device__ inline Element ToElement(float x) { return __float2bfloat16_rn(x); }
#else
#include <cuda_fp16.h>
using Element = __half;
using Element2 = __half2;
__device__ inline float2 ToFloat2(Element2 pair) { return __half22float2(pair); }
__device__ inline Element2 ToElement2(float x, float y) { return __floats2half2_rn(x, y); }
__device__ inline float ToFloat(Element x) { return __half2float(x); }
__device__ inline Element ToElement(float x) { return __float2half_rn(x); }
#endif

constexpr int kChunk = 8;  // elements in 16 bytes, the widest load

// 16 bytes of elements as fp32.
__device__ inline void ToFloats(const uint4& chunk, float (&to)[kChunk]) {
  const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = ToFloat2(*reinterpret_cast<const Element2*>(&words[i]));
    to[2 * i] = pair.x;
    to[2 * i + 1] = pair.y;
  }
}
