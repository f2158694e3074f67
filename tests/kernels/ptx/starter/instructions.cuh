// In place of client/cli/starter/cuda_tiles/instructions.cuh.
#pragma once

#include <cuda_fp16.h>

#include "matrices.h"

template <bool transposed>
void LoadMatrices(unsigned (&to)[4], const __half* row) {
  emulation::LoadMatrices(to, emulation::Cta::Address(row), transposed);
}

inline void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high) {
  emulation::MultiplyMatrices(sums, a, low, high, sums, [](unsigned word, int upper) {
    const uint16_t bits = static_cast<uint16_t>(upper ? word >> 16 : word);
    __half element;
    std::memcpy(&element, &bits, 2);
    return __half2float(element);
  });
}
