// Tiles of Q, K and V in shared memory: rows of kDim elements without padding, chunks of 16 bytes permuted by XOR with
// bits of the row number, so that both the copies in and ldmatrix (8 rows of one chunk column) touch all 32 banks.
//
//   8 chunks, 128 bytes: XOR with row & 7                4 chunks, 64 bytes: XOR with (row / 2) & 3
//   row 0  | 0 1 2 3 4 5 6 7 |                           row 0, 1  | 0 1 2 3 | 0 1 2 3 |   one line of 32 banks
//   row 1  | 1 0 3 2 5 4 7 6 |                           row 2, 3  | 1 0 3 2 | 1 0 3 2 |
//   row 2  | 2 3 0 1 6 7 4 5 |                           row 4, 5  | 2 3 0 1 | 2 3 0 1 |
//
// The XOR stays within kPeriod chunks: the largest power of two up to 8 that divides a row.
//
// With 8-bit K and V lanes read Q, and write O, 8 bytes at a time (operands.cuh): 4 rows of one pair of chunks. The
// bits of the XOR are then rotated, so that its lowest moves chunks by two, and these 4 rows, too, touch all banks:
//
//   8 chunks: XOR with 2 (row & 3) + (row / 4 & 1)       row 0  | 0 1 2 3 4 5 6 7 |
//                                                        row 1  | 2 3 0 1 6 7 4 5 |
//                                                        row 2  | 4 5 6 7 0 1 2 3 |
#pragma once

#include "instructions.cuh"
#include "shape.cuh"

// A tile of elements of type T.
template <class T>
struct TileOf {
  using Type = T;
  static constexpr int kChunkElements = 16 / static_cast<int>(sizeof(T));
  static constexpr int kRowBytes = kDim * static_cast<int>(sizeof(T));
  static constexpr int kRowChunks = kRowBytes / 16;
  static constexpr int kPeriod = kRowChunks % 8 == 0 ? 8 : kRowChunks % 4 == 0 ? 4 : 2;

  __device__ static constexpr unsigned Swizzle(unsigned row) {
    const unsigned bits = row / (8 / kPeriod) % kPeriod;
    return kByteKeys ? bits % (kPeriod / 2) * 2 + bits / (kPeriod / 2) : bits;
  }

  // Where a chunk begins, from its tile's begin on.
  __device__ static constexpr unsigned ChunkOffset(unsigned row, unsigned chunk) {
    return row * kRowBytes + (chunk ^ Swizzle(row)) * 16;
  }
};

using QueryTile = TileOf<Element>;  // and O's, on its way out
using KeyTile = TileOf<KvElement>;

// A lane's address for reads of 16 rows x 32 bytes, moved about the tile at little cost: blocks of rows are an offset
// that the instruction adds, and a block of 32 bytes is one XOR, as no carry leaves the bits that are permuted.
template <class Tile>
class LaneAddress {
 public:
  // `tile` begins at a multiple of 128 bytes; `byte` is one of the chunk's.
  __device__ LaneAddress(unsigned tile, unsigned row, unsigned chunk, unsigned byte = 0)
      : address_(tile + Tile::ChunkOffset(row, chunk) + byte) {}

  __device__ unsigned At(int row_block, int column_block) const {
    constexpr int kBlocks = Tile::kPeriod / 2;  // of columns, in which the XOR stays
    return (address_ ^ (column_block % kBlocks * 32)) + column_block / kBlocks * (Tile::kPeriod * 16) +
           row_block * (16 * Tile::kRowBytes);
  }

  // The same of reads of one chunk a row.
  __device__ unsigned AtChunk(int row_block, int chunk) const {
    return (address_ ^ (chunk % Tile::kPeriod * 16)) + chunk / Tile::kPeriod * (Tile::kPeriod * 16) +
           row_block * (16 * Tile::kRowBytes);
  }

  __device__ LaneAddress Plus(unsigned bytes) const { return LaneAddress(address_ + bytes); }

 private:
  __device__ explicit LaneAddress(unsigned address) : address_(address) {}

  unsigned address_;
};

// Matrices in A's order, rows then columns: (0, 0) (8, 0) (0, 8) (8, 8). Also V's, transposed: two columns of B's.
template <class Tile>
__device__ inline LaneAddress<Tile> RowsFirst(unsigned tile, unsigned lane) {
  return LaneAddress<Tile>(tile, lane % 16, lane / 16);
}

// In B's order for K, whose rows are B's columns: (0, 0) (0, 8) (8, 0) (8, 8).
template <class Tile>
__device__ inline LaneAddress<Tile> ColumnsFirst(unsigned tile, unsigned lane) {
  return LaneAddress<Tile>(tile, lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

// Copies of kRows rows by kCopyThreads threads. A thread has one column of chunks in every kWide, and rows kStep apart.
template <class Tile, int kRows, int kCopyThreads>
struct TileCopy {
  using Type = typename Tile::Type;
  static constexpr int kKeys = kRows;
  static constexpr int kRowChunks = Tile::kRowChunks;
  static constexpr int kRowBytes = Tile::kRowBytes;
  static constexpr int kChunk = Tile::kChunkElements;
  static constexpr int kWide = kRowChunks & -kRowChunks;  // the largest power of two that divides a row
  static constexpr int kStep = kCopyThreads / kWide;
  static constexpr int kPasses = (kRows + kStep - 1) / kStep;
  static_assert(kWide <= 32 && kCopyThreads % kWide == 0, "a warp copies whole rows or parts of the same rows");
  static_assert(kStep >= 8 || Tile::kPeriod == 8, "rows of less than 128 bytes: the swizzle is the same in every pass");
  static_assert((kStep & (kStep - 1)) == 0, "a pass moves the swizzle by XOR");

  __device__ static unsigned Row(unsigned thread) { return thread / kWide; }
  __device__ static unsigned Chunk(unsigned thread) { return thread % kWide; }

  // Where a thread's chunk of pass `pass` and column group `group` lies; `first` is that of (0, 0).
  __device__ static unsigned Address(unsigned first, int pass, int group) {
    const int rows = pass * kStep;
    const int flipped = kStep < 8 ? Tile::Swizzle(rows % 8) * 16 : 0;
    return (first ^ flipped) + rows * kRowBytes + group * (kWide * 16);
  }

  // `from(row)` is where this thread's first chunk of a row lies in global memory. Rows that are not `valid(row)`
  // become zeros, and are not read.
  template <class From, class Valid>
  __device__ static void Start(unsigned tile, unsigned thread, From from, Valid valid) {
    const unsigned row = Row(thread);
    const unsigned chunk = Chunk(thread);
    const unsigned first = tile + Tile::ChunkOffset(row, chunk);
#pragma unroll 2
    for (int pass = 0; pass < kPasses; ++pass) {
      const int at = row + pass * kStep;
      if (kRows % kStep != 0 && at >= kRows) break;
      const bool good = valid(at);
      const Type* source = from(at);
#pragma unroll
      for (int group = 0; group < kRowChunks / kWide; ++group) {
        StartCopy16(Address(first, pass, group), source + group * kWide * kChunk, good && Inside(chunk, group));
      }
    }
  }

  // All rows valid; `from` is where this thread's first chunk of its first row lies.
  __device__ static void StartFull(unsigned tile, unsigned thread, const Type* from, int row_stride) {
    const unsigned row = Row(thread);
    const unsigned chunk = Chunk(thread);
    const unsigned first = tile + Tile::ChunkOffset(row, chunk);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (kRows % kStep != 0 && row + pass * kStep >= kRows) break;
#pragma unroll
      for (int group = 0; group < kRowChunks / kWide; ++group) {
        const Type* source = from + static_cast<long long>(row_stride) * (pass * kStep) + group * kWide * kChunk;
        if (kDim == HEAD_DIM) {
          StartCopy16(Address(first, pass, group), source);
        } else {
          StartCopy16(Address(first, pass, group), source, Inside(chunk, group));
        }
      }
    }
  }

 private:
  // Whether a chunk is one of HEAD_DIM, not of the padding.
  __device__ static bool Inside(unsigned chunk, int group) {
    return kDim == HEAD_DIM || (chunk + group * kWide) * kChunk < HEAD_DIM;
  }
};
