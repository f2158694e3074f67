// The online softmax on wgmma's sums, in registers. A thread has two rows, "low" and "high" eight rows on; the four
// lanes of a quad share them. Logits stay unscaled.
#pragma once

#include "common/math.cuh"
#include "items.cuh"
#include "wgmma.cuh"

// The running maximum may lag behind by this many powers of two before O is rescaled (LAZY_RESCALE): P then stays below
// 2^8, far from fp16's largest number, and sums are fp32.
constexpr float kLag = 8.0f;
constexpr float kLog2e = 1.442695040888963407f;

// Of a thread's two rows: the running maximum, -inf before the first key, and this thread's part of the sum.
struct RowSums {
  float maximum[2];
  float sum[2];
};

// Logits in base 2: cap tanh(x), with tanh(x) = 1 - 2 / (e^2x + 1).
__device__ inline void Cap(Logits& s, const Arguments& t) {
#pragma unroll
  for (int i = 0; i < BLOCK_N / 2; ++i) s[i] = t.cap - __fdividef(2.0f * t.cap, Exp2(s[i] * t.cap_in) + 1.0f);
}

// -inf for the keys that a row does not see. `row` is the thread's low row.
__device__ inline void Mask(Logits& s, const Item& item, int row, int first_key, unsigned lane, const Arguments& t) {
  first_key += static_cast<int>(lane % 4 * 2);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Keys keys = KeysOf(row + half * 8, item, t);
    const int begin = keys.begin - first_key;
    const int end = keys.end - first_key;
#pragma unroll
    for (int j = 0; j < BLOCK_N / 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int key = j * 8 + e;
        if (key >= end || (MASK == 2 && key < begin)) s[4 * j + 2 * half + e] = MinusInfinity();
      }
  }
}

// What O and the sums are to be multiplied by when the maxima rise; `needed` is the same for all lanes of a warp.
struct Rescale {
  bool needed;
  float factor[2];
};

// Brings the maxima up to S, with LAZY_RESCALE only when one lags by more than 2^kLag, and the sums to the new maxima.
// O may be a product's at this time: it is left to ApplyRescale.
__device__ inline Rescale RaiseMaxima(const Logits& s, RowSums& rows, float scale) {
  float seen[2] = {s[0], s[2]};
#pragma unroll
  for (int j = 0; j < BLOCK_N / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      seen[half] = fmaxf(seen[half], fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
    }
  Rescale rescale = {true, {1.0f, 1.0f}};
#if LAZY_RESCALE
  const float lag = kLag / scale;
  rescale.needed = __any_sync(0xffffffffu, (seen[0] > rows.maximum[0] + lag) | (seen[1] > rows.maximum[1] + lag));
  if (!rescale.needed) return rescale;
#endif
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float before = rows.maximum[half];
    rows.maximum[half] = fmaxf(before, GroupMax<4>(seen[half]));
    rescale.factor[half] = Exp2((before - ExponentBase(rows.maximum[half])) * scale);
    rows.sum[half] *= rescale.factor[half];
  }
  return rescale;
}

__device__ inline void ApplyRescale(Outputs& o, const Rescale& rescale) {
  if (LAZY_RESCALE && !rescale.needed) return;
#pragma unroll
  for (int j = 0; j < kOutputColumns / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) o[4 * j + e] *= rescale.factor[e / 2];
}

// S = 2^(scale (S - m)), and the sums of it unless products make them.
__device__ inline void Exponentiate(Logits& s, RowSums& rows, float scale) {
  const float base[2] = {ExponentBase(rows.maximum[0]) * scale, ExponentBase(rows.maximum[1]) * scale};
#pragma unroll
  for (int i = 0; i < BLOCK_N / 2; ++i) {
    const int half = i % 4 / 2;
    s[i] = Exp2(fmaf(s[i], scale, -base[half]));
    if (!ONES) rows.sum[half] += s[i];
  }
}

// P, rounded. wgmma's sums of 16 neighbouring columns are, as they stand, its operand A of 16 columns: no lane needs
// another's.
__device__ inline void Round(const Logits& s, Weights& p) {
#pragma unroll
  for (int i = 0; i < BLOCK_N / 4; ++i) {
    const Element2 pair = ToElement2(s[2 * i], s[2 * i + 1]);
    p[i] = *reinterpret_cast<const unsigned*>(&pair);
  }
}

// Makes the sums the whole rows'.
__device__ inline void ReduceQuads(RowSums& rows, const Outputs& o) {
#if ONES
  rows.sum[0] = o[HEAD_DIM / 2];
  rows.sum[1] = o[HEAD_DIM / 2 + 2];
#else
  rows.sum[0] = GroupSum<4>(rows.sum[0]);
  rows.sum[1] = GroupSum<4>(rows.sum[1]);
#endif
}

// Joins the rows with their heads' sinks, a logit without a value: it takes weight in the sum, and a row that saw no
// key has the sink as its maximum. Sums are the whole row's. A sink of -inf changes nothing.
__device__ inline void AddSinks(RowSums& rows, Outputs& o, const float (&sinks)[2], float scale) {
  Rescale rescale = {true, {}};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sink = sinks[half] * (kLog2e / scale);  // as maxima are: unscaled
    const float seen = rows.maximum[half];
    const float maximum = seen > sink ? seen : sink;  // fmaxf would hide a NaN
    const float base = ExponentBase(maximum);
    rescale.factor[half] = Exp2((seen - base) * scale);
    rows.maximum[half] = maximum;
    rows.sum[half] = rows.sum[half] * rescale.factor[half] + Exp2((sink - base) * scale);
  }
  ApplyRescale(o, rescale);
}
