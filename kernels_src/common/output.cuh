// Where a work item's result goes: O and LSE when it saw all keys, or the split's partial (m, l, O) in scratch.
#pragma once

#include "common/element.cuh"
#include "common/math.cuh"

// Pointers are to the first row of the work item's query tile.
struct Output {
  Element* o;            // null with splits
  long long row_stride;  // of o
  float* lse;            // null when nobody asked, and with splits
  float* partial_o;      // [row][HEAD_DIM], not yet divided by the sum
  float2* partial_ml;    // [row] (maximum in base 2, sum)
  int rows;              // valid rows of the tile
#if KV_DTYPE
  float value_scale;  // of V's head: what a Compute multiplies its sums by
#endif

  // `kCount` (2 or 8) neighbouring columns of a row from `column` on; `sum` is the row's.
  template <int kCount>
  __device__ void Store(int row, int column, const float (&values)[kCount], float sum) const {
    if (row >= rows) return;
    if (o == nullptr) {
      float2* to = reinterpret_cast<float2*>(partial_o + static_cast<long long>(row) * HEAD_DIM + column);
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) to[i] = make_float2(values[2 * i], values[2 * i + 1]);
      return;
    }
    const float scale = Reciprocal(sum);
    alignas(16) Element2 pairs[kCount / 2];
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) pairs[i] = ToElement2(values[2 * i] * scale, values[2 * i + 1] * scale);
    Element* to = o + row * row_stride + column;
    if constexpr (kCount == 8) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(pairs);
    } else {
      static_assert(kCount == 2, "one pair or one chunk");
      *reinterpret_cast<Element2*>(to) = pairs[0];
    }
  }

  __device__ void StoreSums(int row, float maximum, float sum) const {
    if (row >= rows) return;
    if (o == nullptr) {
      partial_ml[row] = make_float2(maximum, sum);
    } else if (lse != nullptr) {
      lse[row] = LogSumExp(maximum, sum);
    }
  }
};
