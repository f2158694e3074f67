// mma's operands from shared memory: Q, K and V of a warp. 16-bit elements are there as mma wants them, also those that
// wide_tile.cuh has converted. What follows is of the others.
//
// 8-bit K and V: a register of ldmatrix holds four elements, which become two registers of fp16. To leave them where
// they are, in their lane, the product's columns are numbered anew. Of 16 columns d of Q K^T lane t of a quad has
//
//   K of a key   | 4t 4t+1 4t+2 4t+3 |       a row's 16 bytes, of which mma's B wants pair .. and pair + 8 ..:
//   B            low = (4t, 4t+1)    high = (4t+2, 4t+3)
//   A, Q         the same four of a row: 8 bytes one behind the other, a load of their own instead of ldmatrix
//
// Q in bf16 becomes fp16, once: bf16 for K would take three instructions more for each pair. A negative scale of K is
// Q's sign, so that the largest logit is the largest sum.
//
// V is transposed by pairs of bytes, columns 2g and 2g + 1 of lane g / 4. B wants two keys of one column:
//
//   V            | key 2t: 2g 2g+1 | key 2t+1: 2g 2g+1 |
//   B            of the even columns (2g of both keys)   of the odd ones (2g+1 of both keys)
//   O            sums of two blocks of 8 columns are thus of even and of odd columns: a lane's are 4t .. 4t+3
#pragma once

#include "scale.cuh"
#include "wide_tile.cuh"

// Blocks of 16 columns that are read together.
constexpr int kKeySteps = KEYS_ARE_BYTES ? 2 : 1;
constexpr int kValueSteps = VALUES_ARE_BYTES ? 2 : 1;

// One ldmatrix of 8-bit K reads 32 keys x 16 columns where the team's keys are a multiple of 32: 16 keys x 32 columns
// would take the registers of 16 columns more of Q.
constexpr bool kKeysFirst = KEYS_ARE_BYTES && kKeyBlocks % 2 == 0;
#if KV_CONVERT == 2
using KeyLanes = WideLaneAddress<kWideBegin>;
#else
using KeyLanes = LaneAddress<KeyTile>;
#endif
#if KV_CONVERT
using ValueLanes = WideLaneAddress<kWideValues>;
#else
using ValueLanes = LaneAddress<KeyTile>;
#endif

__device__ inline KeyLanes KeyAddress(unsigned tile, unsigned lane) {
#if KV_CONVERT == 2
  return KeyLanes(tile, lane % 8 + lane / 16 * 8, lane / 8 % 2);
#else
  return kKeysFirst ? LaneAddress<KeyTile>(tile, lane, 0) : ColumnsFirst<KeyTile>(tile, lane);
#endif
}

__device__ inline ValueLanes ValueAddress(unsigned tile, unsigned lane) {
#if KV_CONVERT
  return ValueLanes(tile, lane % 16, lane / 16);
#else
  return RowsFirst<KeyTile>(tile, lane);
#endif
}

#if KEYS_ARE_BYTES
// With kKeysFirst: low and high of each 8 keys of two blocks, in 16 columns.
__device__ inline void ReadManyKeys(unsigned (&to)[8], const KeyLanes& keys, int key_block, int dim_block) {
  unsigned read[4];
  LoadMatrices(read, keys.AtChunk(key_block, dim_block));
#pragma unroll
  for (int side = 0; side < 4; ++side) Pairs(read[side], to[2 * side], to[2 * side + 1]);
}
#endif

// K of 16 keys and kDimStep columns: for each 16 columns low and high of keys 0 .. 7, and of keys 8 .. 15.
__device__ inline void ReadKeys(unsigned (&to)[kKeySteps][4], const KeyLanes& keys, int key_block, int step) {
#if KEYS_ARE_BYTES
  unsigned read[4];
  LoadMatrices(read, keys.At(key_block, step));
#pragma unroll
  for (int side = 0; side < 2; ++side)
#pragma unroll
    for (int of = 0; of < 2; ++of) Pairs(read[2 * side + of], to[of][2 * side], to[of][2 * side + 1]);
#else
#pragma unroll
  for (int of = 0; of < kKeySteps; ++of) LoadMatrices(to[of], keys.At(key_block, step * kKeySteps + of));
#endif
}

// V likewise: for each 16 columns low and high of columns 0 .. 7, and of columns 8 .. 15; or of the even, and the odd.
__device__ inline void ReadValues(unsigned (&to)[kValueSteps][4], const ValueLanes& values, int key_block, int step) {
#if VALUES_ARE_BYTES
  unsigned read[4];
  LoadMatricesTransposed(read, values.At(key_block, step));
#pragma unroll
  for (int of = 0; of < 2; ++of)
#pragma unroll
    for (int high = 0; high < 2; ++high) EvenAndOdd(read[2 * of + high], to[of][high], to[of][2 + high]);
#else
#pragma unroll
  for (int of = 0; of < kValueSteps; ++of)
    LoadMatricesTransposed(to[of], values.At(key_block, step * kValueSteps + of));
#endif
}

// Q of a warp: in shared memory, or (Q_REGISTERS) read once and kept.
class Queries {
 public:
  // `tile` is the warp's first row of Q.
  __device__ Queries(unsigned tile, unsigned lane)
#if KEYS_ARE_BYTES
      : address_(tile, lane / 4, lane % 4 / 2, lane % 2 * 8){}
#elif KV_DTYPE
      : address_(RowsFirst<QueryTile>(tile, lane)),
        own_(tile, lane / 4, 0, lane % 4 * 4){}
#else
      : address_(RowsFirst<QueryTile>(tile, lane)) {
  }
#endif

  // Once Q has arrived for the whole CTA, all of which calls it.
#if KV_DTYPE
        __device__ void Keep(Scale & scale, float key_scale, unsigned team) {
    scale.Times(fabsf(key_scale));
    float factors[kRowBlocks][2];
    FactorsOf(factors);
    if (kScalesQueries) scale.Undo(factors);
    const bool negative = key_scale < 0.0f;
    if (negative) {
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) factors[i][0] = -factors[i][0], factors[i][1] = -factors[i][1];
    }
    if (!Q_REGISTERS && (kScalesQueries || negative)) Convert(factors, team);
#if Q_REGISTERS
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int d = 0; d < kDimBlocks; ++d) {
        Load(kept_[i][d], i, d);
#pragma unroll
        for (int e = 0; e < 4; ++e) kept_[i][d][e] = Scaled(kept_[i][d][e], factors[i][e % 2]);
      }
#endif
  }
#else
        __device__ void Keep() {
#if Q_REGISTERS
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int d = 0; d < kDimBlocks; ++d) Load(kept_[i][d], i, d);
#endif
  }
#endif

  __device__ void Read(unsigned (&to)[kRowBlocks][4], int dim_block) const {
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) {
#if Q_REGISTERS
#pragma unroll
      for (int e = 0; e < 4; ++e) to[i][e] = kept_[i][dim_block][e];
#else
      Load(to[i], i, dim_block);
#endif
    }
  }

 private:
  __device__ void Load(unsigned (&to)[4], int row_block, int dim_block) const {
    const unsigned address = address_.At(row_block, dim_block);
#if KEYS_ARE_BYTES
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint2 four = LoadShared8(address + half * (8 * QueryTile::kRowBytes));
      to[half] = four.x;
      to[2 + half] = four.y;
    }
#else
    LoadMatrices(to, address);
#endif
  }

#if KV_DTYPE
  // What each of this lane's rows is multiplied by: 1 or, of bf16, the power of two that brings the row's largest
  // element to 2^15 .. 2^16, where fp16 ends. Elements above 2^-29 of it are exact there, and no error is above 2^-40
  // of it. Rows of less than 2^-40 have that one's, those with an infinity one that is finite; NaNs do not count.
  __device__ void FactorsOf(float (&factors)[kRowBlocks][2]) const {
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) {
      float largest[2] = {};
#pragma unroll
      for (int d = 0; kScalesQueries && d < kDimBlocks; ++d) {
        unsigned q[4];
        Load(q, i, d);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          largest[e % 2] = fmaxf(largest[e % 2], fmaxf(fabsf(LowOf(q[e])), fabsf(HighOf(q[e]))));
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        factors[i][half] = kScalesQueries ? FactorFor(GroupMax<4>(largest[half])) : 1.0f;
      }
    }
  }

  // Rows of teams are the same: the first writes them.
  __device__ void Convert(const float (&factors)[kRowBlocks][2], unsigned team) const {
    if (WARPS_N > 1) __syncthreads();
#pragma unroll
    for (int i = 0; i < kRowBlocks && team == 0; ++i)
#pragma unroll
      for (int d = 0; d < kDimBlocks; ++d) {
        unsigned q[4];
        Load(q, i, d);
        if (!KEYS_ARE_BYTES) __syncwarp();  // other lanes have read what this one writes, here and for FactorsOf
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned low = Scaled(q[half], factors[i][half]);
          const unsigned high = Scaled(q[2 + half], factors[i][half]);
#if KEYS_ARE_BYTES
          StoreShared8(address_.At(i, d) + half * (8 * QueryTile::kRowBytes), low, high);
#else
          const unsigned to = own_.At(i, d) + half * (8 * QueryTile::kRowBytes);
          StoreShared4(to, low);
          StoreShared4(to ^ 16, high);  // the next chunk
#endif
        }
      }
    if (WARPS_N > 1) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }

  __device__ static float FactorFor(float largest) {
    const unsigned exponent = __float_as_uint(largest) >> 23;  // 142 is that of 2^15
    return __uint_as_float((127 + 142 - max(exponent, 87u)) << 23);
  }
  __device__ static float LowOf(unsigned pair) { return __uint_as_float(pair << 16); }
  __device__ static float HighOf(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
  // Two elements of Q in fp16.
  __device__ static unsigned Scaled(unsigned pair, float factor) {
    if (kScalesQueries) return Halves(LowOf(pair) * factor, HighOf(pair) * factor);
    return factor < 0.0f ? pair ^ 0x80008000u : pair;
  }
#endif

  LaneAddress<QueryTile> address_;
#if KV_DTYPE && !KEYS_ARE_BYTES
  LaneAddress<QueryTile> own_;  // of this lane's elements, columns 0 and 1 of a block
#endif
#if Q_REGISTERS
  unsigned kept_[kRowBlocks][kDimBlocks][4];
#endif
};
