// Split-KV reduction of the partial results: with m = max m_s and w_s = 2^(m_s - m),
//
//   O = sum w_s O_s / l     l = sum w_s l_s     LSE = ln(2) (m + log2 l)
//
// A warp a row. Its lanes stand in kGroups groups of kLanes, 16 bytes of O a lane and vector; group g takes splits
// g, g + kGroups, ..., eight loads ahead, and the groups' sums are added in a fixed order, so that results repeat bit
// by bit. A split that saw no key has m = -inf and weight 0. There are at most 32: a lane has one's m and l.
#pragma once

#include "output.cuh"

constexpr int kVectors = HEAD_DIM / 4;
constexpr int kLanes = kVectors > 16 ? 32 : 16;
constexpr int kGroups = 32 / kLanes;
constexpr int kLaneVectors = (kVectors + kLanes - 1) / kLanes;

__device__ inline void Add(float4& to, float weight, const float4& x) {
  to.x += weight * x.x, to.y += weight * x.y, to.z += weight * x.z, to.w += weight * x.w;
}

__device__ inline float4 OfLane(const float4& x, unsigned bit) {
  return make_float4(__shfl_xor_sync(0xffffffffu, x.x, bit), __shfl_xor_sync(0xffffffffu, x.y, bit),
                     __shfl_xor_sync(0xffffffffu, x.z, bit), __shfl_xor_sync(0xffffffffu, x.w, bit));
}

// Row `number` to `o`, and its LSE to `lse` unless that is null. Reads past L1: other CTAs have just written.
__device__ inline void CombineRow(const float* partial_o, const float2* partial_ml, int splits, long long number,
                                  long long all_rows, Element* o, float* lse, unsigned lane) {
  const float2 part =
      lane < splits ? __ldcg(partial_ml + lane * all_rows + number) : make_float2(MinusInfinity(), 0.0f);
  const float maximum = GroupMax<32>(part.x);
  const float own_weight = Exp2(part.x - ExponentBase(maximum));
  const float sum = GroupSum<32>(own_weight * part.y);

  const int group = lane / kLanes;
  const int column = lane % kLanes;
  float4 values[kLaneVectors] = {};
  constexpr int kAhead = 8 / kLaneVectors;
  for (int first = 0; first < splits; first += kAhead * kGroups) {
    float4 read[kAhead][kLaneVectors];
    float weights[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int split = first + i * kGroups + group;
      weights[i] = __shfl_sync(0xffffffffu, own_weight, split % 32);
      const float4* from = reinterpret_cast<const float4*>(partial_o + (split * all_rows + number) * HEAD_DIM);
#pragma unroll
      for (int j = 0; j < kLaneVectors; ++j) {
        const bool valid = split < splits && column + j * kLanes < kVectors;
        read[i][j] = valid ? __ldcg(from + column + j * kLanes) : make_float4(0, 0, 0, 0);
      }
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
#pragma unroll
      for (int j = 0; j < kLaneVectors; ++j) Add(values[j], weights[i], read[i][j]);
  }
  const float scale = Reciprocal(sum);
#pragma unroll
  for (int j = 0; j < kLaneVectors; ++j) {
    if (kGroups == 2) Add(values[j], 1.0f, OfLane(values[j], 16));
    if (group > 0 || column + j * kLanes >= kVectors) continue;
    const Element2 pairs[2] = {ToElement2(values[j].x * scale, values[j].y * scale),
                               ToElement2(values[j].z * scale, values[j].w * scale)};
    *reinterpret_cast<uint2*>(o + (column + j * kLanes) * 4) = *reinterpret_cast<const uint2*>(pairs);
  }
  if (lse != nullptr && lane == 0) *lse = LogSumExp(maximum, sum);
}
