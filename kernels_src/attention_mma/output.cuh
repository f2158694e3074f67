// Where a warp's rows go: O and LSE when they saw all keys, or a split's partial (m, l, O) in scratch.
//
// Partial layout: m (base 2) and l [split][row], O [split][row][HEAD_DIM] in fp32, not yet divided by l; rows are of
// [batch][query head][seq_q], and unused where a sequence is shorter.
#pragma once

#include "merge.cuh"

__device__ inline long long RowIndex(const Sequence& sequence, const Query& query, const Arguments& t) {
  return (static_cast<long long>(sequence.batch) * t.heads * t.Pack() + query.head) * t.seq_q + query.row;
}

// In Q or O.
__device__ inline long long RowOffset(const Sequence& sequence, const Query& query, const Strides& strides) {
  const long long row = (VARLEN ? sequence.first_query : 0) + query.row;
  const long long first = VARLEN ? 0 : sequence.batch * strides.batch;
  return first + static_cast<long long>(query.head) * strides.head + row * strides.row;
}

// In LSE.
__device__ inline long long LseIndex(const Sequence& sequence, const Query& query, const Arguments& t) {
  if (!VARLEN) return RowIndex(sequence, query, t);
  return static_cast<long long>(query.head) * t.q_bounds[t.batch] + sequence.first_query + query.row;
}

// Columns 4 (lane % 4) and the next three of a block of 16, with 8-bit V (operands.cuh); of row `half`.
__device__ inline float4 FourColumns(const float (&o)[2 * kDimBlocks][4], int dim_block, int half) {
  const float(&even)[4] = o[2 * dim_block];
  const float(&odd)[4] = o[2 * dim_block + 1];
  return make_float4(even[2 * half], odd[2 * half], even[2 * half + 1], odd[2 * half + 1]);
}

// O of a warp, through its own rows of shared memory (`tile`, a tile as in shared_tile.cuh), in stores of 16 bytes.
__device__ inline void StoreOutputs(unsigned tile, const RowSums& rows, const Outputs& o, float value_scale,
                                    const Item& item, int first_row, unsigned lane, const Arguments& t) {
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float scale = OneOver(rows.sum[i][2 * half]) * value_scale;
      const int row = i * 16 + half * 8 + lane / 4;
#if VALUES_ARE_BYTES
#pragma unroll
      for (int d = 0; d < kDimBlocks; ++d) {
        const float4 four = FourColumns(o[i], d, half);
        const Element2 pairs[2] = {ToElement2(four.x * scale, four.y * scale),
                                   ToElement2(four.z * scale, four.w * scale)};
        StoreShared8(tile + QueryTile::ChunkOffset(row, 2 * d + lane % 4 / 2) + lane % 2 * 8,
                     *reinterpret_cast<const unsigned*>(&pairs[0]), *reinterpret_cast<const unsigned*>(&pairs[1]));
      }
#else
#pragma unroll
      for (int j = 0; j < 2 * kDimBlocks; ++j) {
        const Element2 pair = ToElement2(o[i][j][2 * half] * scale, o[i][j][2 * half + 1] * scale);
        StoreShared4(tile + QueryTile::ChunkOffset(row, j) + lane % 4 * 4, *reinterpret_cast<const unsigned*>(&pair));
      }
#endif
    }
  __syncwarp();
  constexpr int kOutChunks = HEAD_DIM / kChunk;
#pragma unroll 4
  for (int index = lane; index < kWarpRows * kOutChunks; index += 32) {
    const int row = index / kOutChunks;
    const int chunk = index % kOutChunks;
    if (first_row + row >= item.sequence.Rows(t)) break;
    const Query query = QueryOf(item.head, first_row + row, t);
    const float4 four = LoadShared16(tile + QueryTile::ChunkOffset(row, chunk));
    *reinterpret_cast<float4*>(t.o + RowOffset(item.sequence, query, t.of_o) + chunk * kChunk) = four;
  }
}

__device__ inline void StorePartial(const RowSums& rows, const Outputs& o, const Scale& scale, float value_scale,
                                    const Item& item, int first_row, unsigned lane, const Arguments& t) {
  const long long all_rows = static_cast<long long>(t.batch) * t.heads * t.Rows();
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + i * 16 + half * 8 + static_cast<int>(lane / 4);
      if (row >= item.sequence.Rows(t)) continue;
      const long long number = item.split * all_rows + RowIndex(item.sequence, QueryOf(item.head, row, t), t);
#if VALUES_ARE_BYTES
      float* to = t.partial_o + number * HEAD_DIM + lane % 4 * 4;
#pragma unroll
      for (int d = 0; d < kDimBlocks; ++d) {
        if (d * 16 < HEAD_DIM) {
          const float4 four = FourColumns(o[i], d, half);
          *reinterpret_cast<float4*>(to + d * 16) =
              make_float4(four.x * value_scale, four.y * value_scale, four.z * value_scale, four.w * value_scale);
        }
      }
#else
      float* to = t.partial_o + number * HEAD_DIM + lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < 2 * kDimBlocks; ++j) {
        if (j * 8 < HEAD_DIM) {
          *reinterpret_cast<float2*>(to + j * 8) =
              make_float2(o[i][j][2 * half] * value_scale, o[i][j][2 * half + 1] * value_scale);
        }
      }
#endif
      if (lane % 4 == 0) {
        t.partial_ml[number] = make_float2(rows.maximum[i][half] * scale.OfLogits(i, half), rows.sum[i][2 * half]);
      }
    }
}

__device__ inline void StoreLse(const RowSums& rows, const Scale& scale, const Item& item, int first_row, unsigned lane,
                                const Arguments& t) {
  if (t.lse == nullptr || lane % 4 != 0) return;
#pragma unroll
  for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + i * 16 + half * 8 + static_cast<int>(lane / 4);
      if (row >= item.sequence.Rows(t)) continue;
      t.lse[LseIndex(item.sequence, QueryOf(item.head, row, t), t)] =
          LogSumExp(rows.maximum[i][half] * scale.OfLogits(i, half), rows.sum[i][2 * half]);
    }
}
