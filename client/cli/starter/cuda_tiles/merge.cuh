// The warps of a CTA have seen different keys of the same rows. With m = max m_w and f_w = 2^(m_w - m),
//
//   O = sum f_w O_w / sum f_w l_w        LSE = ln(2) (m + log2(sum f_w l_w))
//
// through shared memory: O of each warp in fp32 where its tiles were, m and l of all warps' rows behind them.
#pragma once

#include "tile.cuh"

// `slices`: of `kSliceBytes` for each warp, then 8 WARPS ROWS bytes. `o` and `lse` (or null) from the first row on.
template <int kSliceBytes>
__device__ inline void Merge(unsigned char* slices, const Outputs& out, const Rows& rows, __half* o, float* lse,
                             int valid_rows) {
  static_assert(kSliceBytes >= ROWS * kStride * 4, "a slice takes the warp's O");
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* const greatest = reinterpret_cast<float*>(slices + WARPS * kSliceBytes);
  float* const sum = greatest + WARPS * ROWS;
  const auto out_of = [=](int w, int row, int column) {
    return reinterpret_cast<float2*>(slices + w * kSliceBytes) + (row * kStride + column) / 2;
  };
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * i + 8 * half + lane / 4;
      const float whole = GroupSum<4>(rows.sum[i][half]);
      if (lane % 4 == 0) {
        greatest[warp * ROWS + row] = rows.greatest[i][half];
        sum[warp * ROWS + row] = whole;
      }
#pragma unroll
      for (int d = 0; d < 2 * kColumnBlocks; ++d) {
        *out_of(warp, row, 8 * d + lane % 4 * 2) = make_float2(out[i][d][2 * half], out[i][d][2 * half + 1]);
      }
    }
  __syncthreads();

  for (int i = threadIdx.x; i < min(ROWS, valid_rows) * HEAD_DIM / 2; i += 32 * WARPS) {
    const int row = i / (HEAD_DIM / 2);
    const int column = i % (HEAD_DIM / 2) * 2;
    float all = MinusInfinity(), total = 0;
    float2 merged = make_float2(0, 0);
    for (int w = 0; w < WARPS; ++w) all = fmaxf(all, greatest[w * ROWS + row]);
    for (int w = 0; w < WARPS; ++w) {
      const float factor = Exp2(greatest[w * ROWS + row] - ExponentBase(all));
      const float2 of = *out_of(w, row, column);
      total += factor * sum[w * ROWS + row];
      merged = make_float2(merged.x + factor * of.x, merged.y + factor * of.y);
    }
    const unsigned pair = Pair(merged.x * Reciprocal(total), merged.y * Reciprocal(total));
    *reinterpret_cast<unsigned*>(o + row * HEAD_DIM + column) = pair;
    if (lse && column == 0) lse[row] = LogSumExp(all, total);
  }
}
