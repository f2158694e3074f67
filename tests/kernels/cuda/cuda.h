// CUDA C++ for the host's compiler: qualifiers, built-in variables and functions, by the CTA that runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "../cta.h"
#include "vectors.h"

#define __device__
#define __global__
// One copy for all fibers, as these run in one thread; also right for `extern __shared__`.
#define __shared__ thread_local
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

namespace emulation {

struct Dimension {
  unsigned x;
};

}  // namespace emulation

#define threadIdx (emulation::Dimension{static_cast<unsigned>(emulation::running->fiber().thread)})
#define blockIdx (emulation::Dimension{emulation::running->block()})
#define gridDim (emulation::Dimension{emulation::running->grid()})

using std::max;
using std::min;
inline long long max(int a, long long b) { return std::max<long long>(a, b); }
inline long long min(int a, long long b) { return std::min<long long>(a, b); }

inline void __syncthreads() { emulation::running->ArriveNamed(0, emulation::running->threads()); }
inline void __syncwarp() {
  emulation::WarpInstruction<char>("__syncwarp", char{}, [](const char*, char*) {});
}
inline float __shfl_xor_sync(unsigned, float x, int mask) {
  return emulation::WarpInstruction<float>("__shfl_xor_sync", x, [=](const float* in, float* out) {
    for (int lane = 0; lane < 32; ++lane) out[lane] = in[lane ^ mask];
  });
}
template <class T>
T __shfl_sync(unsigned, T x, int from) {
  struct Lane {
    T x;
    int from;
  };
  return emulation::WarpInstruction<T>("__shfl_sync", Lane{x, from}, [](const Lane* in, T* out) {
    for (int lane = 0; lane < 32; ++lane) out[lane] = in[in[lane].from % 32].x;
  });
}
inline bool __any_sync(unsigned, bool x) {
  return emulation::WarpInstruction<bool>("__any_sync", x, [](const bool* in, bool* out) {
    std::fill(out, out + 32, std::any_of(in, in + 32, [](bool any) { return any; }));
  });
}

inline unsigned atomicAdd(unsigned* to, unsigned x) { return std::exchange(*to, *to + x); }
inline unsigned atomicExch(unsigned* to, unsigned x) { return std::exchange(*to, x); }
template <class T>
T __ldcg(const T* from) {
  return *from;
}
inline float __int_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline float __uint_as_float(unsigned bits) { return __int_as_float(bits); }
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
// Byte i is that byte of (high, low) whose number is nibble i of `selector`.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) out |= static_cast<unsigned>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  return out;
}
inline float __fdividef(float x, float y) { return x / y; }
