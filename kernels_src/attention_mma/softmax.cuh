// The online softmax on mma's sums, in registers.
//
// A lane has, of a block of 16 rows, rows lane / 4 ("low") and lane / 4 + 8 ("high"): sums [0], [1] and [2], [3]. The
// four lanes of a quad share a row. Logits stay unscaled.
//
// What stands beside mma takes time from it: on the H200 a scheduler issues an mma every 3.4 ns, with three FFMA, FADD
// or comparisons each every 5.1 to 5.2 ns, with three multiplications by a constant every 4.3, with three ldmatrix or
// conversions every 3.4 to 3.5 (docs/benchmarks/2026-11-21-h200-mma-issue.md). So, with a maximum that seldom moves
// (LAZY_RESCALE):
//
//   S begins at -m            the subtraction of the running maximum is mma's
//   S > threshold ?           asked of each lane's own logits: maxima and their exchange only where it is so
//   P = 2^(scale S)           a multiplication with a constant each
//   l += P 1                  an mma more for 16 keys of 16 rows, instead of an addition each
#pragma once

#include "common/math.cuh"
#include "instructions.cuh"
#include "scale.cuh"

// The rescale threshold: logits may exceed the running maximum by this many powers of two before O is rescaled
// (LAZY_RESCALE). P then stays below 2^8, far from fp16's largest number, and sums are fp32.
constexpr float kRescaleThreshold = 8.0f;
constexpr float kLog2e = 1.442695040888963407f;
// The same before scaling, of a row.
__device__ inline float UnscaledThreshold(const Scale& scale, int row_block, int half) {
#if KV_CONVERT  // computed anew for each tile: registers are O's and S's
  const unsigned bits = __float_as_uint(scale.OfLogits(row_block, half));
  return __fdividef(kRescaleThreshold, __uint_as_float(Opaque(bits)));
#endif
  if (kByteKeys) return __fdividef(kRescaleThreshold, scale.OfLogits(row_block, half));
  return kRescaleThreshold / kLog2e * sqrtf(HEAD_DIM);
}

// 1 / sum, or 0 for a row that saw no key, whose sum and output are 0. To the last bit or two; sums are far from
// overflow.
__device__ inline float OneOver(float sum) { return sum == 0.0f ? 0.0f : __fdividef(1.0f, sum); }

constexpr bool kFromMaximum = LAZY_RESCALE && !SOFTCAP;  // S begins at -m

// bf16 rounds weights to 8 bits, which LSE would show: those are summed before they are rounded.
constexpr bool kSumsByMma = kHalfOperands;

// Of a lane's rows: the running maximum, -inf before the first key, and l as mma's sums: [0] is the low row's, [2] the
// high one's, and [1], [3] are the same again. Without kSumsByMma [0] and [2] alone, and in the mainloop this lane's
// part.
struct RowSums {
  float maximum[kRowBlocks][2];
  float sum[kRowBlocks][4];
};

__device__ inline void Clear(RowSums& rows, Outputs& o) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) rows.maximum[i][half] = MinusInfinity();
#pragma unroll
    for (int e = 0; e < 4; ++e) rows.sum[i][e] = 0.0f;
#pragma unroll
    for (int j = 0; j < 2 * kDimBlocks; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) o[i][j][e] = 0.0f;
  }
}

// Logits in base 2: cap tanh(x), with tanh(x) = 1 - 2 / (e^2x + 1).
__device__ inline void Cap(Logits& s, const Scale& scale, const Arguments& t) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kKeyBlocks; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[i][j][e] = t.cap - __fdividef(2.0f * t.cap, Exp2(s[i][j][e] * scale.OfCap(i, e / 2)) + 1.0f);
      }
}

// -inf for the keys that a row does not see. `first_row`, of the warp, and `first_key`, of the team's keys.
__device__ inline void Mask(Logits& s, int first_row, int first_key, unsigned lane, const Sequence& sequence,
                            const Arguments& t) {
  first_key += static_cast<int>(lane % 4 * 2);
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Keys keys = KeysOf((first_row + i * 16 + half * 8 + static_cast<int>(lane / 4)) / t.Pack(), sequence, t);
      const int begin = keys.begin - first_key;
      const int end = keys.end - first_key;
#pragma unroll
      for (int j = 0; j < 2 * kKeyBlocks; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = j * 8 + e;
          if (key >= end || (MASK == 2 && key < begin)) s[i][j][2 * half + e] = MinusInfinity();
        }
    }
}

// What S of a block of rows begins at, as mma's sums.
__device__ inline void BeginLogits(const RowSums& rows, int row_block, float (&begin)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) begin[e] = kFromMaximum ? -ExponentBase(rows.maximum[row_block][e / 2]) : 0.0f;
}

// Whether a logit exceeds its row's maximum by more than the rescale threshold, or a row has no maximum yet.
__device__ inline bool NeedsRescale(const Logits& s, const RowSums& rows, const Scale& scale) {
  float thresholds[kRowBlocks][2];
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) thresholds[i][half] = UnscaledThreshold(scale, i, half);
  bool grown = false;
  bool above[4] = {};  // apart, so that comparisons need not wait for each other
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) grown |= rows.maximum[i][half] == MinusInfinity();
#pragma unroll
    for (int j = 0; j < 2 * kKeyBlocks; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) above[e] |= s[i][j][e] > thresholds[i][e / 2];
  }
  return grown | above[0] | above[1] | above[2] | above[3];
}

// Brings the maxima up to S, and S, O and the sums to the new maxima.
__device__ inline void RaiseMaxima(Logits& s, RowSums& rows, Outputs& o, const Scale& scale) {
  if (kFromMaximum && !__any_sync(0xffffffffu, NeedsRescale(s, rows, scale))) return;
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float seen = fmaxf(s[i][0][2 * half], s[i][0][2 * half + 1]);
#pragma unroll
      for (int j = 1; j < 2 * kKeyBlocks; ++j) seen = fmaxf(seen, fmaxf(s[i][j][2 * half], s[i][j][2 * half + 1]));
      const float before = rows.maximum[i][half];
      const float begin = kFromMaximum ? ExponentBase(before) : 0.0f;
      const float maximum = fmaxf(before, GroupMax<4>(seen) + begin);
      const float base = ExponentBase(maximum);
      const float factor = Exp2((before - base) * scale.OfLogits(i, half));
      rows.maximum[i][half] = maximum;
      rows.sum[i][2 * half] *= factor;
      rows.sum[i][2 * half + 1] *= factor;
#pragma unroll
      for (int j = 0; j < 2 * kDimBlocks; ++j) {
        o[i][j][2 * half] *= factor;
        o[i][j][2 * half + 1] *= factor;
      }
#pragma unroll
      for (int j = 0; kFromMaximum && j < 2 * kKeyBlocks; ++j) {
        s[i][j][2 * half] -= base - begin;
        s[i][j][2 * half + 1] -= base - begin;
      }
    }
}

// Two weights as mma's operand.
__device__ inline unsigned OperandPair(float low, float high) {
#if KV_DTYPE
  return Halves(low, high);
#else
  const Element2 pair = ToElement2(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
#endif
}

// P = 2^(scale (S - m)) of 16 keys. mma's sums of two neighbouring blocks of 8 columns are, as they stand, the A
// operand of 16 columns: no lane needs another's.
__device__ inline void Weights(const Logits& s, int key_block, RowSums& rows, const Scale& scales,
                               unsigned (&p)[kRowBlocks][4]) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float scale = scales.OfLogits(i, half);
      const float base = ExponentBase(rows.maximum[i][half]) * scale;
      const auto weight = [=](float logit) { return Exp2(kFromMaximum ? logit * scale : fmaf(logit, scale, -base)); };
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float* logits = s[i][2 * key_block + j];
        const float low = weight(logits[2 * half]);
        const float high = weight(logits[2 * half + 1]);
        if (!kSumsByMma) rows.sum[i][2 * half] += low + high;
        p[i][2 * j + half] = OperandPair(low, high);
      }
    }
}

// Adds up what the quads' lanes have of the sums.
__device__ inline void ReduceQuads(RowSums& rows) {
  if (kSumsByMma) return;
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) rows.sum[i][2 * half] = GroupSum<4>(rows.sum[i][2 * half]);
}

// Adds its head's sink to every row, a logit without a value: it takes weight in the sum, and a row that saw no key
// has the sink as its maximum. Sums are the whole row's. A sink of -inf changes nothing.
__device__ inline void AddSinks(RowSums& rows, Outputs& o, const Scale& scales, const Item& item, int first_row,
                                unsigned lane, const Arguments& t) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + i * 16 + half * 8 + static_cast<int>(lane / 4);
      const float scale = scales.OfLogits(i, half);
      const float sink = t.sinks[QueryOf(item.head, row, t).head] * kLog2e / scale;  // as maxima are: unscaled
      const float seen = rows.maximum[i][half];
      const float maximum = seen > sink ? seen : sink;  // fmaxf would hide a NaN
      const float base = ExponentBase(maximum);
      const float factor = Exp2((seen - base) * scale);
      rows.maximum[i][half] = maximum;
      rows.sum[i][2 * half] = rows.sum[i][2 * half] * factor + Exp2((sink - base) * scale);
#pragma unroll
      for (int j = 0; j < 2 * kDimBlocks; ++j) {
        o[i][j][2 * half] *= factor;
        o[i][j][2 * half + 1] *= factor;
      }
    }
}
