// O and LSE on their way out, straight from registers; or a split's part of them (m, l, O), which goes to scratch.
//
// Of a row a lane has pairs of columns, 4 bytes each, 16 bytes apart; quads exchange them so that each lane has 16
// bytes in a row and a quad stores 64:
//
//             block 0  block 1  block 2  block 3                 of 8 columns each
//   before    0 1 2 3  0 1 2 3  0 1 2 3  0 1 2 3                 lane that has the pair
//   after     0 0 0 0  1 1 1 1  2 2 2 2  3 3 3 3
#pragma once

#include "softmax.cuh"

static_assert(HEAD_DIM % 32 == 0, "four blocks of eight columns at a time");

// Transposes the quad's 4 x 4 words: lane i's word j becomes lane j's word i.
__device__ inline void TransposeQuad(unsigned (&words)[4], unsigned lane) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = lane & bit;
#pragma unroll
    for (int low = 0; low < 4; ++low) {
      if (low & bit) continue;
      const unsigned theirs = __shfl_xor_sync(0xffffffffu, upper ? words[low] : words[low | bit], bit);
      (upper ? words[low] : words[low | bit]) = theirs;
    }
  }
}

__device__ inline long long OutputOffset(const Item& item, const Query& query, const Arguments& t) {
  const Sequence& sequence = item.sequence;
  const long long first = VARLEN ? sequence.first_query * t.o_row_stride : sequence.batch * t.o_batch_stride;
  return first + query.head * t.o_head_stride + query.row * t.o_row_stride;
}

__device__ inline long long LseIndex(const Item& item, const Query& query, const Arguments& t) {
  if (!VARLEN) return RowIndex(item, query, t);
  return static_cast<long long>(query.head) * t.q_bounds[t.batch] + item.sequence.first_query + query.row;
}

// `row` is the thread's low row.
__device__ inline void StoreOutputs(const Outputs& o, const RowSums& rows, const Item& item, int row, unsigned lane,
                                    const Arguments& t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float scale = Reciprocal(rows.sum[half]);
    const int to_row = row + half * 8;
    Element* to = t.o + OutputOffset(item, QueryOf(item.head, to_row, t), t) + lane % 4 * kChunk;
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 32; ++j) {
      unsigned words[4];
#pragma unroll
      for (int block = 0; block < 4; ++block) {
        const float* pair = &o[4 * (4 * j + block) + 2 * half];
        const Element2 rounded = ToElement2(pair[0] * scale, pair[1] * scale);
        words[block] = *reinterpret_cast<const unsigned*>(&rounded);
      }
      TransposeQuad(words, lane);
      if (to_row < item.sequence.Rows(t)) {
        *reinterpret_cast<uint4*>(to + j * 4 * kChunk) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }
}

__device__ inline void StoreLse(const RowSums& rows, const Item& item, int row, unsigned lane, float scale,
                                const Arguments& t) {
  if (t.lse == nullptr || lane % 4 != 0) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int to_row = row + half * 8;
    if (to_row >= item.sequence.Rows(t)) continue;
    t.lse[LseIndex(item, QueryOf(item.head, to_row, t), t)] = LogSumExp(rows.maximum[half] * scale, rows.sum[half]);
  }
}

// Rows of fp32 that are not divided by their sums yet: a quad stores 32 bytes of a row at once.
__device__ inline void StorePartial(const Outputs& o, const RowSums& rows, const Item& item, int row, unsigned lane,
                                    float scale, const Arguments& t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int to_row = row + half * 8;
    if (to_row >= item.sequence.Rows(t)) continue;
    const long long number = item.split * t.AllRows() + RowIndex(item, QueryOf(item.head, to_row, t), t);
    float* to = t.partial_o + number * HEAD_DIM + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 8; ++j) {
      *reinterpret_cast<float2*>(to + j * 8) = make_float2(o[4 * j + 2 * half], o[4 * j + 2 * half + 1]);
    }
    if (lane % 4 == 0) t.partial_ml[number] = make_float2(rows.maximum[half] * scale, rows.sum[half]);
  }
}
