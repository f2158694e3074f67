// The elements of K and V: those of Q or, with KV_DTYPE 1 or 2, 8-bit ones, e4m3 or e5m2 (docs/problems.md), which
// stand for element * scale. Both types are short forms of binary16, and every element is a number of f16 and of bf16,
// too.
#pragma once

#include "common/element.cuh"

#if KV_DTYPE
#include <cuda_fp16.h>
using KvElement = unsigned char;

// Two elements, bits 0..7 and 8..15, without their scale.
//
//   e5m2  s eeeee mm            binary16  s eeeee mm00000000     the same exponents
//   e4m3  s eeee mmm            binary16  s 0eeee mmm0000000     exponents 8 lower; also subnormal numbers of both
__device__ inline float2 KvToFloat2(unsigned pair) {
  const unsigned bytes = (pair & 0xffu) << 8 | (pair & 0xff00u) << 16;  // each the upper byte of 16 bits
#if KV_DTYPE == 2
  return __half22float2(*reinterpret_cast<const __half2*>(&bytes));
#else
  const unsigned halves = (bytes & 0x80008000u) | (bytes & 0x7f007f00u) >> 1;
  const float2 small = __half22float2(*reinterpret_cast<const __half2*>(&halves));
  const float nan = __int_as_float(0x7fc00000);
  return make_float2((pair & 0x7fu) == 0x7fu ? nan : small.x * 256.0f,
                     (pair & 0x7f00u) == 0x7f00u ? nan : small.y * 256.0f);
#endif
}

__device__ inline float KvToFloat(KvElement x) { return KvToFloat2(x).x; }
#else
using KvElement = Element;
#endif
