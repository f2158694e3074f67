// The instructions of matrices, by the PTX ISA's tables: ldmatrix, and mma.m16n8k16 with sums in fp32.
#pragma once

#include <cstdint>
#include <cstring>

#include "cta.h"

namespace emulation {

inline uint16_t SharedElement(unsigned row, int column) {
  uint16_t bits;
  std::memcpy(&bits, running->At(row, 16) + 2 * column, 2);
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
  const auto loaded = WarpInstruction<Registers>("ldmatrix", shared, load);
  std::memcpy(to, loaded.words, sizeof(to));
}

inline long long products = 0;  // warps' mma

// `half_of(word, upper)` is the element in that half of a register.
template <class HalfOf>
void MultiplyMatrices(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high, const float (&from)[4],
                      HalfOf half_of) {
  struct Operands {
    unsigned a[4], b[2];
  };
  struct Products {
    float of[4];
  };
  const auto multiply = [=](const Operands* in, Products* out) {
    ++products;
    float rows[16][16];
    float columns[8][16];
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 16; ++i) rows[i][k] = half_of(in[i % 8 * 4 + k % 8 / 2].a[(i >= 8) + 2 * (k >= 8)], k % 2);
      for (int j = 0; j < 8; ++j) columns[j][k] = half_of(in[j * 4 + k % 8 / 2].b[k >= 8], k % 2);
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
  const auto products = WarpInstruction<Products>("mma", operands, multiply);
  for (int e = 0; e < 4; ++e) sums[e] = from[e] + products.of[e];
}

}  // namespace emulation
