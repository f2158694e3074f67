// The two matrix products of a tile of keys, by one warp: S = Q K^T and O += P V.
#pragma once

#include "shared_tile.cuh"
#include "softmax.cuh"

// Q of a warp: in shared memory, or (Q_REGISTERS) read once and kept.
class Queries {
 public:
  // `tile` is the warp's first row of Q.
  __device__ Queries(unsigned tile, unsigned lane) : address_(RowsFirst(tile, lane)) {}

  // Once Q has arrived.
  __device__ void Keep() {
#if Q_REGISTERS
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int d = 0; d < kDimBlocks; ++d) LoadMatrices(kept_[i][d], address_.At(i, d));
#endif
  }

  __device__ void Read(unsigned (&to)[kRowBlocks][4], int dim_block) const {
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) {
#if Q_REGISTERS
#pragma unroll
      for (int e = 0; e < 4; ++e) to[i][e] = kept_[i][dim_block][e];
#else
      LoadMatrices(to[i], address_.At(i, dim_block));
#endif
    }
  }

 private:
  LaneAddress address_;
#if Q_REGISTERS
  unsigned kept_[kRowBlocks][kDimBlocks][4];
#endif
};

// S = Q K^T, less the maxima with kFromMaximum. `keys` is ColumnsFirst of the team's keys.
__device__ inline void QueryKey(Logits& s, const Queries& queries, const LaneAddress& keys, const RowSums& rows) {
  float begin[kRowBlocks][4];
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) BeginLogits(rows, i, begin[i]);
#pragma unroll
  for (int d = 0; d < kDimBlocks; ++d) {
    unsigned q[kRowBlocks][4];
    queries.Read(q, d);
#pragma unroll
    for (int j = 0; j < kKeyBlocks; ++j) {
      unsigned k[4];
      LoadMatrices(k, keys.At(j, d));
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          float(&to)[4] = s[i][2 * j + side];
          Multiply(to, q[i], k[2 * side], k[2 * side + 1], d == 0 ? begin[i] : to);
        }
    }
  }
}

// O += P V, l += P 1. `values` is RowsFirst of the team's keys. P is computed 16 keys at a time, beside the products of
// the 16 before.
__device__ inline void WeightValue(Outputs& o, const Logits& s, RowSums& rows, const LaneAddress& values, float scale) {
  const Element2 ones = ToElement2(1.0f, 1.0f);
  const unsigned one = *reinterpret_cast<const unsigned*>(&ones);
#pragma unroll
  for (int j = 0; j < kKeyBlocks; ++j) {
    unsigned p[kRowBlocks][4];
    Weights(s, j, rows, scale, p);
#pragma unroll
    for (int i = 0; kSumsByMma && i < kRowBlocks; ++i) Multiply(rows.sum[i], p[i], one, one);
#pragma unroll
    for (int d = 0; d < kDimBlocks; ++d) {
      unsigned v[4];
      LoadMatricesTransposed(v, values.At(j, d));
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        Multiply(o[i][2 * d], p[i], v[0], v[1]);
        Multiply(o[i][2 * d + 1], p[i], v[2], v[3]);
      }
    }
  }
}
