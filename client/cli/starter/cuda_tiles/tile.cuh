// A warp's arithmetic on a tile of KEYS keys, for ROWS queries.
//
// Of each block of 16 rows, lane l has rows l / 4 and l / 4 + 8, half 0 and half 1, and of every 8 columns two: the
// four lanes of a quad share a row (instructions.cuh).
#pragma once

#include "common/math.cuh"
#include "instructions.cuh"

constexpr int kRowBlocks = ROWS / 16;
constexpr int kKeyBlocks = KEYS / 16;
constexpr int kColumnBlocks = HEAD_DIM / 16;
constexpr int kStride = HEAD_DIM + 8;  // of rows in shared memory: 16 bytes of eight rows are in different banks
static_assert(ROWS % 16 == 0 && KEYS % 16 == 0 && HEAD_DIM % 32 == 0, "mma takes 16 rows, 16 keys and 16 columns");

using Queries = unsigned[kRowBlocks][kColumnBlocks][4];   // fp16 pairs
using Logits = float[kRowBlocks][2 * kKeyBlocks][4];      // S, then P
using Outputs = float[kRowBlocks][2 * kColumnBlocks][4];  // O
struct Rows {
  float greatest[kRowBlocks][2];  // m
  float sum[kRowBlocks][2];       // l, this lane's part of it
  int end[kRowBlocks][2];         // of the keys that the row sees
};

__device__ inline unsigned Pair(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Q of the rows from `first_row` on, zeros behind the last, and the rows as they begin.
__device__ inline void Begin(Queries& queries, Rows& rows, const __half* q, int first_row, int seq_q, int seq_kv,
                             int visible) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * i + 8 * half + threadIdx.x % 32 / 4;
      rows.greatest[i][half] = MinusInfinity();
      rows.sum[i][half] = 0;
      rows.end[i][half] = min(seq_kv, row + visible + 1);
      const __half* const from = q + (long long)row * HEAD_DIM + threadIdx.x % 4 * 2;
#pragma unroll
      for (int d = 0; d < kColumnBlocks; ++d)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          queries[i][d][2 * side + half] =
              row < seq_q ? *reinterpret_cast<const unsigned*>(from + 16 * d + 8 * side) : 0;
        }
    }
}

// S = Q K^T.
__device__ inline void QueryKey(Logits& s, const Queries& queries, const __half* key_tile) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kKeyBlocks; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[i][j][e] = 0;
#pragma unroll
  for (int d = 0; d < kColumnBlocks; ++d)
#pragma unroll
    for (int j = 0; j < kKeyBlocks; ++j) {
      unsigned keys[4];  // of 8 keys the two halves of 16 columns, then of the next 8 keys
      LoadMatrices<false>(keys, key_tile + (16 * j + lane / 16 * 8 + lane % 8) * kStride + 16 * d + lane / 8 % 2 * 8);
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        Multiply(s[i][2 * j], queries[i][d], keys[0], keys[1]);
        Multiply(s[i][2 * j + 1], queries[i][d], keys[2], keys[3]);
      }
    }
}

// S becomes P = 2^(scale S - m), with l and O brought to the new m. `first_key` of the tile.
__device__ inline void Softmax(Logits& s, Rows& rows, Outputs& out, int first_key, float scale) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float seen = MinusInfinity();
#pragma unroll
      for (int j = 0; j < 2 * kKeyBlocks; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& logit = s[i][j][2 * half + e];
          const int key = first_key + 8 * j + threadIdx.x % 4 * 2 + e;
          logit = key < rows.end[i][half] ? logit * scale : MinusInfinity();
          seen = fmaxf(seen, logit);
        }
      const float greatest = fmaxf(rows.greatest[i][half], GroupMax<4>(seen));
      const float base = ExponentBase(greatest);
      const float keep = Exp2(rows.greatest[i][half] - base);
      float sum = rows.sum[i][half] * keep;
#pragma unroll
      for (int j = 0; j < 2 * kKeyBlocks; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& weight = s[i][j][2 * half + e];
          weight = Exp2(weight - base);
          sum += weight;
        }
#pragma unroll
      for (int d = 0; d < 2 * kColumnBlocks; ++d)
#pragma unroll
        for (int e = 0; e < 2; ++e) out[i][d][2 * half + e] *= keep;
      rows.greatest[i][half] = greatest;
      rows.sum[i][half] = sum;
    }
}

// O += P V. What a lane has of 16 columns of S is what it must have of P: P is never in memory.
__device__ inline void WeightValue(Outputs& out, const Logits& p, const __half* value_tile) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < kKeyBlocks; ++j) {
    unsigned weights[kRowBlocks][4];
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float* const pair = &p[i][2 * j + e / 2][e % 2 * 2];
        weights[i][e] = Pair(pair[0], pair[1]);
      }
#pragma unroll
    for (int d = 0; d < kColumnBlocks; ++d) {
      unsigned values[4];  // of 8 columns the two halves of 16 keys, then of the next 8 columns
      LoadMatrices<true>(values, value_tile + (16 * j + lane % 16) * kStride + 16 * d + lane / 16 * 8);
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        Multiply(out[i][2 * d], weights[i], values[0], values[1]);
        Multiply(out[i][2 * d + 1], weights[i], values[2], values[3]);
      }
    }
  }
}
