// The PTX instructions that CUDA C++ has no functions for; sm_80 and later.
#pragma once
#include <cuda_fp16.h>

// Four 8 x 8 matrices of shared memory, each `transposed` or not. Lane l gives the address of row l % 8 of matrix
// l / 8, and gets of each matrix row l / 4, elements 2 (l % 4) and the next. PTX ISA, "ldmatrix".
template <bool transposed>
__device__ inline void LoadMatrices(unsigned (&to)[4], const __half* row) {
  const unsigned shared = (unsigned)__cvta_generic_to_shared(row);
  if (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared)
                 : "memory");
  }
}

// sums += A B, of 16 x 16 and 16 x 8 elements in fp16; sums are 16 x 8 in fp32. With row = l / 4 and pair = 2 (l % 4),
// lane l has
//
//   A      a[0] (row, pair ..)   a[1] (row + 8, pair ..)   a[2] (row, pair + 8 ..)   a[3] (row + 8, pair + 8 ..)
//   B      low (pair .., row)    high (pair + 8 .., row)
//   sums   [0], [1] (row, pair ..)   [2], [3] (row + 8, pair ..)
//
// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
__device__ inline void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
}
