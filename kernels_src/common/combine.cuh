// Split-KV reduction: combines the splits' partial results. With m = max m_s, w_s = 2^(m_s - m), l = sum w_s l_s,
//
//   O = sum w_s O_s / l        LSE = ln(2) (m + log2 l)
//
// A warp a row, splits in ascending order, so that results repeat bit by bit. Partial layout: m, l [split][row],
// O [split][row][HEAD_DIM]. A split that saw no key has m = -inf and weight 0; its O is not read.
#pragma once

#include "common/element.cuh"
#include "common/math.cuh"

constexpr int kCombineWarps = 4;

extern "C" __global__ void __launch_bounds__(kCombineWarps * 32)
    attention_combine(const float* __restrict__ partial_o, const float2* __restrict__ partial_ml,
                      Element* __restrict__ o, float* __restrict__ lse, int splits, long long rows, int heads,
                      int seq_q, long long batch_stride, long long head_stride, long long row_stride) {
  static_assert(HEAD_DIM % 32 == 0, "a lane has HEAD_DIM / 32 columns");
  const long long row = static_cast<long long>(blockIdx.x) * kCombineWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;

  // Lane i holds splits i and i + 32.
  const float2 empty = make_float2(MinusInfinity(), 0.0f);
  const float2 low = lane < splits ? partial_ml[lane * rows + row] : empty;
  const float2 high = lane + 32 < splits ? partial_ml[(lane + 32) * rows + row] : empty;
  const float maximum = GroupMax<32>(fmaxf(low.x, high.x));
  const float base = ExponentBase(maximum);
  const float low_weight = Exp2(low.x - base);
  const float high_weight = Exp2(high.x - base);
  const float sum = GroupSum<32>(low_weight * low.y + high_weight * high.y);

  float values[HEAD_DIM / 32] = {};
  for (int split = 0; split < splits; ++split) {
    const float weight = __shfl_sync(0xffffffffu, split < 32 ? low_weight : high_weight, split % 32);
    if (weight == 0.0f) continue;
    const float* from = partial_o + (split * rows + row) * HEAD_DIM + lane;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 32; ++i) values[i] += weight * from[32 * i];
  }

  const long long batch_head = row / seq_q;
  const long long offset =
      batch_head / heads * batch_stride + batch_head % heads * head_stride + row % seq_q * row_stride + lane;
  const float scale = Reciprocal(sum);
#pragma unroll
  for (int i = 0; i < HEAD_DIM / 32; ++i) o[offset + 32 * i] = ToElement(values[i] * scale);
  if (lse != nullptr && lane == 0) lse[row] = LogSumExp(maximum, sum);
}
