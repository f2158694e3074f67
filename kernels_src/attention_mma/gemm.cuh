// The two matrix products of a tile of keys, by one warp: S = Q K^T and O += P V.
#pragma once

#include "operands.cuh"
#include "softmax.cuh"

// Work that a product does beside itself, in parts: none.
struct Nothing {
  __device__ void operator()(int, int) const {}
};

// S = Q K^T, less the maxima with kFromMaximum. `keys` is KeyAddress of the team's keys.
template <class Beside = Nothing>
__device__ inline void QueryKey(Logits& s, const Queries& queries, const KeyLanes& keys, const RowSums& rows,
                                Beside&& beside = Beside()) {
  float begin[kRowBlocks][4];
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) BeginLogits(rows, i, begin[i]);
#if KEYS_ARE_BYTES
  if (kKeysFirst) {
#pragma unroll
    for (int d = 0; d < kDimBlocks; ++d) {
      beside(d, kDimBlocks);
      unsigned q[kRowBlocks][4];
      queries.Read(q, d);
#pragma unroll
      for (int j = 0; j < kKeyBlocks; j += 2) {
        unsigned k[8];
        ReadManyKeys(k, keys, j, d);
#pragma unroll
        for (int side = 0; side < 4; ++side)
#pragma unroll
          for (int i = 0; i < kRowBlocks; ++i) {
            float(&to)[4] = s[i][2 * j + side];
            Multiply(to, q[i], k[2 * side], k[2 * side + 1], d == 0 ? begin[i] : to);
          }
      }
    }
    return;
  }
#endif
#pragma unroll
  for (int step = 0; step < kDimBlocks / kKeySteps; ++step) {
    beside(step, kDimBlocks / kKeySteps);
    unsigned q[kKeySteps][kRowBlocks][4];
#pragma unroll
    for (int of = 0; of < kKeySteps; ++of) queries.Read(q[of], step * kKeySteps + of);
#pragma unroll
    for (int j = 0; j < kKeyBlocks; ++j) {
      unsigned k[kKeySteps][4];
      ReadKeys(k, keys, j, step);
#pragma unroll
      for (int of = 0; of < kKeySteps; ++of)
#pragma unroll
        for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
          for (int side = 0; side < 2; ++side) {
            float(&to)[4] = s[i][2 * j + side];
            Multiply(to, q[of][i], k[of][2 * side], k[of][2 * side + 1], step == 0 && of == 0 ? begin[i] : to);
          }
    }
  }
}

// O += P V, l += P 1. `values` is RowsFirst of the team's keys. P is computed 16 keys at a time, beside the products of
// the 16 before.
template <class Beside = Nothing>
__device__ inline void WeightValue(Outputs& o, const Logits& s, RowSums& rows, const ValueLanes& values,
                                   const Scale& scale, Beside&& beside = Beside()) {
  const unsigned ones = OperandPair(1.0f, 1.0f);
#pragma unroll
  for (int j = 0; j < kKeyBlocks; ++j) {
    unsigned p[kRowBlocks][4];
    Weights(s, j, rows, scale, p);
#pragma unroll
    for (int i = 0; kSumsByMma && i < kRowBlocks; ++i) Multiply(rows.sum[i], p[i], ones, ones);
#pragma unroll
    for (int step = 0; step < kDimBlocks / kValueSteps; ++step) {
      beside(j * (kDimBlocks / kValueSteps) + step, kKeyBlocks * (kDimBlocks / kValueSteps));
      unsigned v[kValueSteps][4];
      ReadValues(v, values, j, step);
#pragma unroll
      for (int of = 0; of < kValueSteps; ++of)
#pragma unroll
        for (int i = 0; i < kRowBlocks; ++i) {
          const int d = step * kValueSteps + of;
          Multiply(o[i][2 * d], p[i], v[of][0], v[of][1]);
          Multiply(o[i][2 * d + 1], p[i], v[of][2], v[of][3]);
        }
    }
  }
}
