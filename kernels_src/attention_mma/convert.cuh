// 8-bit elements as fp16, which has all of their values; NaN is NaN.
#pragma once

#include "instructions.cuh"

#if KV_DTYPE
// Four elements in fp16: bytes 0 and 1, bytes 2 and 3. e5m2 are the upper bytes of fp16.
__device__ inline void Pairs(unsigned bytes, unsigned& low, unsigned& high) {
#if KV_DTYPE == 1
  HalvesOfE4m3(bytes, low, high);
#else
  low = __byte_perm(bytes, 0, 0x1404);
  high = __byte_perm(bytes, 0, 0x3424);
#endif
}

// Bytes 0 and 2, bytes 1 and 3.
__device__ inline void EvenAndOdd(unsigned bytes, unsigned& even, unsigned& odd) {
#if KV_DTYPE == 1
  HalvesOfE4m3(__byte_perm(bytes, 0, 0x3120), even, odd);
#else
  even = __byte_perm(bytes, 0, 0x2404);
  odd = __byte_perm(bytes, 0, 0x3414);
#endif
}
#endif
