// What logits are multiplied by, as mma sums them, to be in base 2: log2(e) / sqrt(HEAD_DIM), with 8-bit K times the
// scale of its elements. With Q in bf16 these are logits of rows of Q that were multiplied by a power of two, to fit
// fp16: that is undone here, too, and a scale is a row's.
#pragma once

#include "items.cuh"

#if KV_DTYPE
class Scale {
 public:
  __device__ explicit Scale(const Arguments& t) { Set(SOFTCAP ? t.cap_in : t.scale); }

  // Of row `half` of a block of rows, of this lane. After the cap, where there is one.
  __device__ float OfLogits(int row_block, int half) const { return SOFTCAP ? 1.0f : Of(row_block, half); }
  __device__ float OfCap(int row_block, int half) const { return Of(row_block, half); }

  // Once, by what is not negative.
  __device__ void Times(float key_scale) {
    const float scale = Of(0, 0) * key_scale;
    Set(scale < kLeast ? kLeast : scale);  // NaN stays
  }

  // `factors`, powers of two, are what rows of Q were multiplied by.
  __device__ void Undo(const float (&factors)[kRowBlocks][2]) {
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        of_[i][half] *= __uint_as_float((254u << 23) - __float_as_uint(factors[i][half]));
      }
  }

 private:
  static constexpr float kLeast = 1e-30f;  // 0 times a maximum of -inf would be NaN
  static constexpr int kBlocks = kScalesQueries ? kRowBlocks : 1;
  static constexpr int kHalves = kScalesQueries ? 2 : 1;

  __device__ float Of(int row_block, int half) const { return kScalesQueries ? of_[row_block][half] : of_[0][0]; }
  __device__ void Set(float scale) {
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
#pragma unroll
      for (int half = 0; half < kHalves; ++half) of_[i][half] = scale;
  }

  float of_[kBlocks][kHalves];
};
#else
class Scale {
 public:
  __device__ explicit Scale(const Arguments& t) : t_(t) {}
  __device__ float OfLogits(int, int) const { return SOFTCAP ? 1.0f : t_.scale; }
  __device__ float OfCap(int, int) const { return t_.cap_in; }

 private:
  const Arguments& t_;
};
#endif

// Of the elements of K; where it is negative Q changes its sign instead (operands.cuh).
__device__ inline float KeyScale(const Item& item, const Arguments& t) {
  return kByteKeys ? t.k_scale[ScaleIndex(item, t.of_k_scale, t)] : 1.0f;
}

// What O is multiplied by at the end: the scale of V's elements.
__device__ inline float ValueScale(const Item& item, const Arguments& t) {
  return kByteKeys ? t.v_scale[ScaleIndex(item, t.of_v_scale, t)] : 1.0f;
}
