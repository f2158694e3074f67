// In place of kernels_src/attention_mma/instructions.cuh: what the PTX ISA says of each instruction, for the CPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "matrices.h"
#include "shape.cuh"

using emulation::LoadMatrices;
inline void LoadMatrices(unsigned (&to)[4], unsigned shared) { LoadMatrices(to, shared, false); }
inline void LoadMatricesTransposed(unsigned (&to)[4], unsigned shared) { LoadMatrices(to, shared, true); }

inline float HalfOf(unsigned word, int upper) {
  const uint16_t bits = upper ? word >> 16 : word;
#if KV_DTYPE
  _Float16 element;
  std::memcpy(&element, &bits, 2);
  return static_cast<float>(element);
#else
  Element element;
  std::memcpy(&element, &bits, 2);
  return ToFloat(element);
#endif
}

inline void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high, const float (&from)[4]) {
  emulation::MultiplyMatrices(sums, a, low, high, from, HalfOf);
}
inline void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high) {
  Multiply(sums, a, low, high, sums);
}

#if KV_DTYPE
inline unsigned Halves(float low, float high) {
  const _Float16 halves[2] = {static_cast<_Float16>(low), static_cast<_Float16>(high)};
  unsigned pair;
  std::memcpy(&pair, halves, 4);
  return pair;
}
inline float FloatOfE4m3(unsigned byte) {
  const int exponent = byte >> 3 & 15;
  const int mantissa = byte & 7;
  const float magnitude = (byte & 0x7f) == 0x7f ? NAN
                          : exponent == 0       ? std::ldexp(static_cast<float>(mantissa), -9)
                                                : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return byte & 0x80 ? -magnitude : magnitude;
}
inline void HalvesOfE4m3(unsigned bytes, unsigned& low, unsigned& high) {
  low = Halves(FloatOfE4m3(bytes & 0xff), FloatOfE4m3(bytes >> 8 & 0xff));
  high = Halves(FloatOfE4m3(bytes >> 16 & 0xff), FloatOfE4m3(bytes >> 24));
}

inline uint2 LoadShared8(unsigned shared) {
  uint2 to;
  std::memcpy(&to, emulation::running->At(shared, 8), 8);
  return to;
}
inline void StoreShared8(unsigned shared, unsigned first, unsigned second) {
  const unsigned words[2] = {first, second};
  std::memcpy(emulation::running->At(shared, 8), words, 8);
}
#endif

inline void StartCopy16(unsigned shared, const void* from, bool valid) {
  emulation::running->StartCopy({shared, from, valid, false});
}
inline void StartCopy16(unsigned shared, const void* from) { StartCopy16(shared, from, true); }

inline void SyncBarrier(int barrier, int threads) { emulation::running->ArriveNamed(barrier, threads); }
inline unsigned Uniform(unsigned x) { return __shfl_sync(0xffffffffu, x, 0); }
inline unsigned Opaque(unsigned x) { return x; }
inline unsigned TakeTicket(unsigned* tickets) { return atomicAdd(tickets, 1); }
inline unsigned SharedAddress(const void* pointer) { return emulation::Cta::Address(pointer); }

inline void StoreShared4(unsigned shared, unsigned value) { std::memcpy(emulation::running->At(shared, 4), &value, 4); }
inline void StoreShared16(unsigned shared, const float (&values)[4]) {
  std::memcpy(emulation::running->At(shared, 16), values, 16);
}
inline float4 LoadShared16(unsigned shared) {
  float4 values;
  std::memcpy(&values, emulation::running->At(shared, 16), 16);
  return values;
}
