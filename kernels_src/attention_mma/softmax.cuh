// The online softmax on mma's sums, in registers.
//
// A lane has, of a block of 16 rows, rows lane / 4 ("low") and lane / 4 + 8 ("high"): sums [0], [1] and [2], [3]. The
// four lanes of a quad share a row. Maxima are the row's; `sum` is this lane's part, added up over the quad at the end.
// Logits stay unscaled: 2^(scale s - scale m) is one FFMA and one ex2 each.
#pragma once

#include "common/math.cuh"
#include "items.cuh"

// The running maximum may lag behind by this many powers of two before O is rescaled (LAZY_RESCALE): P then stays below
// 2^8, far from fp16's largest number, and sums are fp32.
constexpr float kLag = 8.0f;
constexpr float kLog2e = 1.442695040888963407f;

// 1 / sum, or 0 for a row that saw no key, whose output is 0. To the last bit or two; sums are far from overflow.
__device__ inline float OneOver(float sum) { return sum > 0.0f ? __fdividef(1.0f, sum) : 0.0f; }

struct RowSums {
  float maximum[kRowBlocks][2];
  float sum[kRowBlocks][2];
};

__device__ inline void Clear(RowSums& rows, Outputs& o) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) rows.maximum[i][half] = MinusInfinity(), rows.sum[i][half] = 0.0f;
#pragma unroll
    for (int j = 0; j < 2 * kDimBlocks; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) o[i][j][e] = 0.0f;
  }
}

// Logits in base 2: cap tanh(x), with tanh(x) = 1 - 2 / (e^2x + 1).
__device__ inline void Cap(Logits& s, const Arguments& t) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kKeyBlocks; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[i][j][e] = t.cap - __fdividef(2.0f * t.cap, Exp2(s[i][j][e] * t.cap_in) + 1.0f);
}

// -inf for the keys that a row does not see. `first_row`, of the warp, and `first_key`, of the team's keys.
__device__ inline void Mask(Logits& s, int first_row, int first_key, unsigned lane,
                            const Sequence& sequence, const Arguments& t) {
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

// Brings the maxima up to S, and O and the sums to the new maxima. LAZY_RESCALE: only when the maximum of a lane's own
// logits has left its row's behind by more than kLag, for which lanes need not be asked but all at once.
__device__ inline void RaiseMaxima(const Logits& s, RowSums& rows, Outputs& o, float scale) {
  float seen[kRowBlocks][2];
  bool grown = false;
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float maximum = fmaxf(s[i][0][2 * half], s[i][0][2 * half + 1]);
#pragma unroll
      for (int j = 1; j < 2 * kKeyBlocks; ++j) {
        maximum = fmaxf(maximum, fmaxf(s[i][j][2 * half], s[i][j][2 * half + 1]));
      }
      seen[i][half] = maximum;
      grown |= (maximum - rows.maximum[i][half]) * scale > kLag;  // -inf - -inf is NaN, which is not greater
    }
  if (LAZY_RESCALE && !__any_sync(0xffffffffu, grown)) return;
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float maximum = fmaxf(rows.maximum[i][half], GroupMax<4>(seen[i][half]));
      const float factor = Exp2((rows.maximum[i][half] - ExponentBase(maximum)) * scale);
      rows.maximum[i][half] = maximum;
      rows.sum[i][half] *= factor;
#pragma unroll
      for (int j = 0; j < 2 * kDimBlocks; ++j) {
        o[i][j][2 * half] *= factor;
        o[i][j][2 * half + 1] *= factor;
      }
    }
}

// P = 2^(scale (S - m)) of 16 keys, summed into `rows`. mma's sums of two neighbouring blocks of 8 columns are, as they
// stand, the A operand of 16 columns: no lane needs another's.
__device__ inline void Weights(const Logits& s, int key_block, RowSums& rows, float scale,
                               unsigned (&p)[kRowBlocks][4]) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float base = ExponentBase(rows.maximum[i][half]) * scale;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float* logits = s[i][2 * key_block + j];
        const float low = Exp2(fmaf(logits[2 * half], scale, -base));
        const float high = Exp2(fmaf(logits[2 * half + 1], scale, -base));
        rows.sum[i][half] += low + high;
        const Element2 pair = ToElement2(low, high);
        p[i][2 * j + half] = *reinterpret_cast<const unsigned*>(&pair);
      }
    }
}

// Joins every row with its head's sink, a logit without a value: it takes weight in the sum, and a row that saw no key
// has the sink as its maximum. Sums are the whole row's. A sink of -inf changes nothing.
__device__ inline void AddSinks(RowSums& rows, Outputs& o, const Item& item, int first_row, unsigned lane,
                                const Arguments& t) {
  const float scale = SOFTCAP ? 1.0f : t.scale;
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + i * 16 + half * 8 + static_cast<int>(lane / 4);
      const float sink = t.sinks[QueryOf(item.head, row, t).head] * kLog2e / scale;  // as maxima are: unscaled
      const float seen = rows.maximum[i][half];
      const float maximum = seen > sink ? seen : sink;  // fmaxf would hide a NaN
      const float base = ExponentBase(maximum);
      const float factor = Exp2((seen - base) * scale);
      rows.maximum[i][half] = maximum;
      rows.sum[i][half] = rows.sum[i][half] * factor + Exp2((sink - base) * scale);
#pragma unroll
      for (int j = 0; j < 2 * kDimBlocks; ++j) {
        o[i][j][2 * half] *= factor;
        o[i][j][2 * half + 1] *= factor;
      }
    }
}

// Adds the quad's parts of the sums up.
__device__ inline void JoinQuads(RowSums& rows) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) rows.sum[i][half] = GroupSum<4>(rows.sum[i][half]);
}
