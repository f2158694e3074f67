// Reduces what the two teams of a CTA found, each for its own keys: with m = max m_t and w_t = 2^(scale (m_t - m)),
//
//   O = sum w_t O_t     l = sum w_t l_t
//
// Team 1 leaves its part in shared memory as its threads hold it, 16 bytes each, so that neither side has a bank
// conflict:
//
//   | thread 0 | thread 1 | ... | thread 127 |   four of O, for each four
//   | thread 0 | thread 1 | ... | thread 127 |   maxima and sums of the two rows
#pragma once

#include "layout.cuh"
#include "softmax.cuh"

constexpr int kMergeBarrier = 4;  // named: behind those of the turns

__device__ inline void StoreShared16(unsigned shared, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}
__device__ inline float4 LoadShared16(unsigned shared) {
  float4 four;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "r"(shared)
               : "memory");
  return four;
}

// Called by both teams with the sums of whole rows; team 0 has the result.
__device__ inline void MergeTeams(unsigned shared, int team, RowSums& rows, Outputs& o, float scale) {
  constexpr int kLine = kWarpgroup * 16;
  const unsigned own = shared + threadIdx.x % kWarpgroup * 16;
  const unsigned sums = own + HEAD_DIM / 8 * kLine;
  if (team == 1) {
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 8; ++i) {
      StoreShared16(own + i * kLine, o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]);
    }
    StoreShared16(sums, rows.maximum[0], rows.maximum[1], rows.sum[0], rows.sum[1]);
  }
  SyncNamed(kMergeBarrier, 2 * kWarpgroup);
  if (team == 0) {
    const float4 theirs = LoadShared16(sums);
    const float maxima[2] = {theirs.x, theirs.y};
    const float their_sums[2] = {theirs.z, theirs.w};
    float weights[2][2];  // [half][team]
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float maximum = fmaxf(rows.maximum[half], maxima[half]);
      const float base = ExponentBase(maximum);
      weights[half][0] = Exp2((rows.maximum[half] - base) * scale);
      weights[half][1] = Exp2((maxima[half] - base) * scale);
      rows.maximum[half] = maximum;
      rows.sum[half] = rows.sum[half] * weights[half][0] + their_sums[half] * weights[half][1];
    }
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 8; ++i) {
      const float4 four = LoadShared16(own + i * kLine);
      const float values[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        o[4 * i + e] = o[4 * i + e] * weights[e / 2][0] + values[e] * weights[e / 2][1];
      }
    }
  }
  SyncNamed(kMergeBarrier, 2 * kWarpgroup);  // shared memory is free for the next item's
}
