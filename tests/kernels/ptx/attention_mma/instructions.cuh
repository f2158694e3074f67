// In place of kernels_src/attention_mma/instructions.cuh: what the PTX ISA says of each instruction, for the CPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "shape.cuh"

inline uint16_t SharedElement(unsigned row, int column) {
  uint16_t bits;
  std::memcpy(&bits, emulation::running->At(row, 16) + 2 * column, 2);
  return bits;
}

// Four 8 x 8 matrices; `rows` of matrix i are at the addresses of lanes 8 i .. 8 i + 7.
inline void LoadMatrices(unsigned (&to)[4], unsigned shared, bool transposed) {
  struct Registers {
    unsigned words[4];
  };
  const auto load = [=](const unsigned* rows, Registers* out) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        const unsigned* of = rows + 8 * matrix;
        const int one = lane / 4;
        const int pair = lane % 4 * 2;
        const unsigned low = transposed ? SharedElement(of[pair], one) : SharedElement(of[one], pair);
        const unsigned high = transposed ? SharedElement(of[pair + 1], one) : SharedElement(of[one], pair + 1);
        out[lane].words[matrix] = low | high << 16;
      }
    }
  };
  const auto loaded = emulation::WarpInstruction<Registers>("ldmatrix", shared, load);
  std::memcpy(to, loaded.words, sizeof(to));
}
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

namespace emulation {
inline long long products = 0;  // warps' mma
}
inline void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high, const float (&from)[4]) {
  struct Operands {
    unsigned a[4], b[2];
  };
  struct Products {
    float of[4];
  };
  const auto multiply = [](const Operands* in, Products* out) {
    ++emulation::products;
    float rows[16][16];
    float columns[8][16];
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 16; ++i) rows[i][k] = HalfOf(in[i % 8 * 4 + k % 8 / 2].a[(i >= 8) + 2 * (k >= 8)], k % 2);
      for (int j = 0; j < 8; ++j) columns[j][k] = HalfOf(in[j * 4 + k % 8 / 2].b[k >= 8], k % 2);
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int e = 0; e < 4; ++e) {
        const float* row = rows[lane / 4 + (e >= 2 ? 8 : 0)];
        const float* column = columns[lane % 4 * 2 + e % 2];
        out[lane].of[e] = 0.0f;
        for (int k = 0; k < 16; ++k) out[lane].of[e] += row[k] * column[k];
      }
    }
  };
  const Operands operands = {{a[0], a[1], a[2], a[3]}, {low, high}};
  const auto products = emulation::WarpInstruction<Products>("mma", operands, multiply);
  for (int e = 0; e < 4; ++e) sums[e] = from[e] + products.of[e];
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
