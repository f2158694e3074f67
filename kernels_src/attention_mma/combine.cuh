// Split-KV reduction: combines the splits' partial results. With m = max m_s and w_s = 2^(m_s - m),
//
//   O = sum w_s O_s / l     l = sum w_s l_s     LSE = ln(2) (m + log2 l)
//
// A row is `parts` warps' work. A warp's lanes stand in kGroups groups of kLanes, 16 bytes of O a lane; group g of warp
// part p takes splits p kGroups + g, then every (parts kGroups)-th, eight loads ahead. Sums of groups, then of parts,
// are added in a fixed order, so that results repeat bit by bit. A split that saw no key has m = -inf and weight 0.
#pragma once

#include "output.cuh"

constexpr int kVectors = HEAD_DIM / 4;  // of 16 bytes, of a row
constexpr int kLanes = kVectors > 16 ? 32 : kVectors > 8 ? 16 : kVectors > 4 ? 8 : 4;
constexpr int kGroups = 32 / kLanes;
constexpr int kLaneVectors = (kVectors + kLanes - 1) / kLanes;
constexpr int kCombineBytes = kLaneVectors * 512;  // shared memory of a warp
static_assert(HEAD_DIM >= 8 && kLaneVectors <= 2, "a lane has at most two vectors of a row");

struct CombinedRow {
  float4 values[kLaneVectors];
  float maximum, sum;
};

__device__ inline void Add(float4& to, float weight, const float4& x) {
  to.x += weight * x.x, to.y += weight * x.y, to.z += weight * x.z, to.w += weight * x.w;
}

// One part of a row; the maximum and the sum are the whole row's. Reads past L1: other CTAs have just written.
__device__ inline CombinedRow CombinePart(const float* partial_o, const float2* partial_ml, int splits, long long row,
                                          long long all_rows, int part, int parts, unsigned lane) {
  // Lane i holds splits i and i + 32.
  const float2 empty = make_float2(MinusInfinity(), 0.0f);
  const float2 low = lane < splits ? __ldcg(partial_ml + lane * all_rows + row) : empty;
  const float2 high = lane + 32 < splits ? __ldcg(partial_ml + (lane + 32) * all_rows + row) : empty;
  CombinedRow combined = {};
  combined.maximum = GroupMax<32>(fmaxf(low.x, high.x));
  const float base = ExponentBase(combined.maximum);
  const float low_weight = Exp2(low.x - base);
  const float high_weight = Exp2(high.x - base);
  combined.sum = GroupSum<32>(low_weight * low.y + high_weight * high.y);

  const int group = lane / kLanes;
  const int column = lane % kLanes;
  constexpr int kAhead = 8;
  for (int first = 0; first < splits; first += kAhead * parts * kGroups) {
    float4 read[kAhead][kLaneVectors];
    float weights[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int split = first + (i * parts + part) * kGroups + group;
      const float of_low = __shfl_sync(0xffffffffu, low_weight, split % 32);
      const float of_high = __shfl_sync(0xffffffffu, high_weight, split % 32);
      weights[i] = split < 32 ? of_low : of_high;
      const float4* from = reinterpret_cast<const float4*>(partial_o + (split * all_rows + row) * HEAD_DIM);
#pragma unroll
      for (int j = 0; j < kLaneVectors; ++j) {
        const bool valid = split < splits && column + j * kLanes < kVectors;
        read[i][j] = valid ? __ldcg(from + column + j * kLanes) : make_float4(0, 0, 0, 0);
      }
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
#pragma unroll
      for (int j = 0; j < kLaneVectors; ++j) Add(combined.values[j], weights[i], read[i][j]);
  }
#pragma unroll
  for (unsigned lanes = 16; lanes >= kLanes; lanes /= 2)
#pragma unroll
    for (int j = 0; j < kLaneVectors; ++j) {
      float4& mine = combined.values[j];
      const float4 theirs =
          make_float4(__shfl_xor_sync(0xffffffffu, mine.x, lanes), __shfl_xor_sync(0xffffffffu, mine.y, lanes),
                      __shfl_xor_sync(0xffffffffu, mine.z, lanes), __shfl_xor_sync(0xffffffffu, mine.w, lanes));
      Add(mine, 1.0f, theirs);
    }
  return combined;
}

__device__ inline void StoreCombined(const CombinedRow& combined, Element* o, float* lse, unsigned lane) {
  const float scale = OneOver(combined.sum);
  if (lane < kLanes) {
#pragma unroll
    for (int j = 0; j < kLaneVectors; ++j) {
      const int column = lane + j * kLanes;
      if (column >= kVectors) break;
      const float4 four = combined.values[j];
      Element2 pairs[2] = {ToElement2(four.x * scale, four.y * scale), ToElement2(four.z * scale, four.w * scale)};
      *reinterpret_cast<uint2*>(o + column * 4) = *reinterpret_cast<const uint2*>(pairs);
    }
  }
  if (lse != nullptr && lane == 0) *lse = LogSumExp(combined.maximum, combined.sum);
}

constexpr long long kNoRow = -1;

// Rows 0 .. `rows` of a CTA of kCtaWarps warps, all of which call it. `index_of(row)` gives the row's index, with
// VARLEN kNoRow where a sequence has no such row; `store(row, combined)` writes it. `shared` is room for kCombineBytes
// of every warp.
template <int kCtaWarps, class Index, class Store>
__device__ inline void CombineRows(const float* partial_o, const float2* partial_ml, int splits, long long all_rows,
                                   int rows, unsigned shared, Index index_of, Store store) {
  const int warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  int parts = 1;
  while (parts * 2 * rows <= kCtaWarps && parts * kGroups < splits) parts *= 2;
  if (parts == 1) {
    for (int row = warp; row < rows; row += kCtaWarps) {
      const long long number = index_of(row);
      if (VARLEN && number == kNoRow) continue;
      store(row, CombinePart(partial_o, partial_ml, splits, number, all_rows, 0, 1, lane));
    }
    return;
  }
  const int row = warp / parts;
  const long long number = row < rows ? index_of(row) : kNoRow;
  const bool used = VARLEN ? number != kNoRow : row < rows;
  CombinedRow combined = {};
  if (used) combined = CombinePart(partial_o, partial_ml, splits, number, all_rows, warp % parts, parts, lane);
  const unsigned own = shared + warp * kCombineBytes + lane * 16;
#pragma unroll
  for (int j = 0; j < kLaneVectors; ++j) {
    const float4& four = combined.values[j];
    const float values[4] = {four.x, four.y, four.z, four.w};
    StoreShared16(own + j * 512, values);
  }
  __syncthreads();
  if (!used || warp % parts != 0) return;
  for (int part = 1; part < parts; ++part) {
#pragma unroll
    for (int j = 0; j < kLaneVectors; ++j) {
      Add(combined.values[j], 1.0f, LoadShared16(own + part * kCombineBytes + j * 512));
    }
  }
  store(row, combined);
}
