// Reduces what the teams of a CTA found, each for its own keys: with m = max m_t and w_t = 2^(scale (m_t - m)),
//
//   O = sum w_t O_t     l = sum w_t l_t
//
// In halves, through shared memory, always in the same order: teams 2, 3 give theirs to teams 0, 1, then 1 to 0.
// A warp's part lies there as its lanes hold it, 16 bytes a lane, so that neither side has a bank conflict:
//
//   | lane 0 | lane 1 | ... | lane 31 |   sums [i][j][0..3], for each of the kRowBlocks x 2 kDimBlocks blocks of 16 x 8
//   | lane 0 | lane 1 | ... | lane 31 |   maxima and sums of block i's two rows, for each i
#pragma once

#include "shared_tile.cuh"
#include "softmax.cuh"

constexpr int kPartLines = kRowBlocks * (2 * kDimBlocks + 1);
constexpr int kPartBytes = kPartLines * 512;

// All threads call it; team 0 has the result. `shared` is room for kPartBytes of every warp of half the teams, and no
// longer in use by anybody; on return likewise.
__device__ inline void MergeTeams(unsigned shared, RowSums& rows, Outputs& o, unsigned team, unsigned team_warp,
                                  unsigned lane, const Scale& scale) {
#pragma unroll
  for (int left = WARPS_N / 2; left > 0; left /= 2) {
    const unsigned part = shared + (team % left * WARPS_M + team_warp) * kPartBytes + lane * 16;
    if (team >= left && team < 2 * left) {
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
        for (int j = 0; j < 2 * kDimBlocks; ++j) StoreShared16(part + (i * 2 * kDimBlocks + j) * 512, o[i][j]);
        const float sums[4] = {rows.maximum[i][0], rows.maximum[i][1], rows.sum[i][0], rows.sum[i][2]};
        StoreShared16(part + (kRowBlocks * 2 * kDimBlocks + i) * 512, sums);
      }
    }
    __syncthreads();
    if (team < left) {
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        const float4 other = LoadShared16(part + (kRowBlocks * 2 * kDimBlocks + i) * 512);
        const float maxima[2] = {other.x, other.y};
        const float sums[2] = {other.z, other.w};
        float mine[2], theirs[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float maximum = fmaxf(rows.maximum[i][half], maxima[half]);
          const float base = ExponentBase(maximum);
          mine[half] = Exp2((rows.maximum[i][half] - base) * scale.OfLogits(i, half));
          theirs[half] = Exp2((maxima[half] - base) * scale.OfLogits(i, half));
          rows.maximum[i][half] = maximum;
          rows.sum[i][2 * half] = rows.sum[i][2 * half] * mine[half] + sums[half] * theirs[half];
        }
#pragma unroll
        for (int j = 0; j < 2 * kDimBlocks; ++j) {
          const float4 four = LoadShared16(part + (i * 2 * kDimBlocks + j) * 512);
          o[i][j][0] = o[i][j][0] * mine[0] + four.x * theirs[0];
          o[i][j][1] = o[i][j][1] * mine[0] + four.y * theirs[0];
          o[i][j][2] = o[i][j][2] * mine[1] + four.z * theirs[1];
          o[i][j][3] = o[i][j][3] * mine[1] + four.w * theirs[1];
        }
      }
    }
    __syncthreads();
  }
}
