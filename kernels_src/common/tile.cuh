// Tiles of Q, K and V in shared memory: `rows` x HEAD_DIM elements, addressed by 16-byte chunks of 8 elements.
//
// A layout says where a chunk lies and in which order threads visit the chunks, so that both the copy into shared
// memory and the reads that the layout is made for spread over the 32 banks of 4 bytes.
#pragma once

#include "common/cp_async.cuh"
#include "common/element.cuh"
#include "common/kv_element.cuh"

constexpr int kRowChunks = HEAD_DIM / kChunk;

// Rows one after the other, each 16 bytes longer than its data. Eight rows' chunks of one column:
//
//   row 0  | c0 c1 c2 ... c7 | pad        banks  0..3
//   row 1  | c0 c1 c2 ... c7 | pad        banks  4..7      (+16 bytes a row)
//   ...
struct PaddedRows {
  static constexpr int kStride = HEAD_DIM + kChunk;
  __device__ static constexpr int Elements(int rows) { return rows * kStride; }
  __device__ static int Row(int index) { return index / kRowChunks; }
  __device__ static int Column(int index) { return index % kRowChunks; }
  __device__ static int Offset(int row, int chunk) { return row * kStride + chunk * kChunk; }
};

// Rows one after the other without padding; a row's chunks are permuted by XOR with bits of the row number:
//
//   row 0  | c0 c1 c2 c3 c4 c5 c6 c7 |    HEAD_DIM 64: 128-byte rows, XOR with row & 7
//   row 1  | c1 c0 c3 c2 c5 c4 c7 c6 |
//   row 2  | c2 c3 c0 c1 c6 c7 c4 c5 |
//
// Rows of an odd number of 64 bytes (HEAD_DIM 32 and 96) alternate between the banks' halves by themselves:
// there the XOR is with (row / 2) & 3.
struct XorRows {
  static constexpr bool kHalfLines = kRowChunks % 8 != 0;
  __device__ static constexpr int Elements(int rows) { return rows * HEAD_DIM; }
  __device__ static int Row(int index) { return index / kRowChunks; }
  __device__ static int Column(int index) { return index % kRowChunks; }
  __device__ static int Offset(int row, int chunk) {
    return row * HEAD_DIM + (chunk ^ (kHalfLines ? (row / 2) & 3 : row & 7)) * kChunk;
  }
};

// 16 x 16 blocks, each 512 contiguous bytes, without padding: what a WMMA fragment loads is one line of memory.
// A warp copies one block at a time: 32 lanes write 512 contiguous bytes and read 16 sectors of 32.
struct Blocks16 {
  static constexpr int kRowBlocks = HEAD_DIM / 16;
  __device__ static constexpr int Elements(int rows) { return rows * HEAD_DIM; }
  __device__ static int Row(int index) { return index / 32 / kRowBlocks * 16 + index % 32 / 2; }
  __device__ static int Column(int index) { return index / 32 % kRowBlocks * 2 + index % 2; }
  __device__ static int Offset(int row, int chunk) {
    return (row / 16 * kRowBlocks + chunk / 2) * 256 + row % 16 * 16 + chunk % 2 * kChunk;
  }
};

template <int kBytes>
struct VectorOf;
template <>
struct VectorOf<4> {
  using Type = unsigned;
  __device__ static Type Zero() { return 0; }
};
template <>
struct VectorOf<8> {
  using Type = uint2;
  __device__ static Type Zero() { return make_uint2(0, 0); }
};
template <>
struct VectorOf<16> {
  using Type = uint4;
  __device__ static Type Zero() { return make_uint4(0, 0, 0, 0); }
};

// Copies `kRows` rows from `from`, `row_stride` elements apart, by all `kThreads` threads. Rows from `valid_rows` on
// are zeros and not read: a zero V row adds nothing, where what lies past the end might be NaN (0 * NaN is NaN).
// With CP_ASYNC_STAGES the copies are only started; without, they are done when all threads have passed a barrier.
template <class Layout, int kRows, int kThreads>
__device__ inline void LoadTile(Element* tile, const Element* from, long long row_stride, int valid_rows) {
#if CP_ASYNC_STAGES
#pragma unroll 4
  for (int index = threadIdx.x; index < kRows * kRowChunks; index += kThreads) {
    const int row = Layout::Row(index);
    const int chunk = Layout::Column(index);
    const bool valid = row < valid_rows;
    CopyAsync16(tile + Layout::Offset(row, chunk), valid ? from + row * row_stride + chunk * kChunk : from, valid);
  }
#else
  using Vector = VectorOf<VEC>;
  constexpr int kPieces = 16 / VEC;  // loads a chunk
#pragma unroll 4
  for (int index = threadIdx.x; index < kRows * kRowChunks * kPieces; index += kThreads) {
    const int row = Layout::Row(index / kPieces);
    const int chunk = Layout::Column(index / kPieces);
    const int piece = index % kPieces * (kChunk / kPieces);
    typename Vector::Type value = Vector::Zero();
    if (row < valid_rows) {
      value = *reinterpret_cast<const typename Vector::Type*>(from + row * row_stride + chunk * kChunk + piece);
    }
    *reinterpret_cast<typename Vector::Type*>(tile + Layout::Offset(row, chunk) + piece) = value;
  }
#endif
}

#if KV_DTYPE
// The same of 8-bit K and V, which become Elements without their scale.
template <class Layout, int kRows, int kThreads>
__device__ inline void LoadTile(Element* tile, const KvElement* from, long long row_stride, int valid_rows) {
  static_assert(CP_ASYNC_STAGES == 0, "an asynchronous copy converts nothing");
#pragma unroll 4
  for (int index = threadIdx.x; index < kRows * kRowChunks; index += kThreads) {
    const int row = Layout::Row(index);
    const int chunk = Layout::Column(index);
    uint2 bytes = make_uint2(0, 0);
    if (row < valid_rows) bytes = *reinterpret_cast<const uint2*>(from + row * row_stride + chunk * kChunk);
    alignas(16) Element2 pairs[kChunk / 2];
#pragma unroll
    for (int i = 0; i < kChunk / 2; ++i) {
      const float2 pair = KvToFloat2((i < 2 ? bytes.x : bytes.y) >> i % 2 * 16);
      pairs[i] = ToElement2(pair.x, pair.y);
    }
    *reinterpret_cast<uint4*>(tile + Layout::Offset(row, chunk)) = *reinterpret_cast<const uint4*>(pairs);
  }
}
#endif
