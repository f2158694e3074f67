// Tiles of 8-bit K and V as 16-bit elements (KV_CONVERT): each thread converts the chunks that it has copied itself, so
// that these need no barrier, and all warps then read the tile by ldmatrix.
//
// A chunk of 16 bytes becomes two of 8 elements. Where rows are lines of 128 bytes, a line has four such pairs,
//
//   | first halves of 4 chunks | second halves |      the other way round in every other line of a row
//
// and slots are permuted by XOR with bits of the row number, the lowest of which swaps the halves. So the threads that
// store at once, eight chunks of a row or four of two rows, touch all banks, and so do eight rows of one column.
// With lines of 64 bytes (kDim no multiple of 64) these have two pairs.
#pragma once

#include "convert.cuh"
#include "shared_tile.cuh"

#if KV_CONVERT
struct WideTile {
  static constexpr int kRowBytes = kDim * 2;
  static constexpr int kSlots = kDim % 64 == 0 ? 8 : 4;  // of a line, in 16 bytes
  static constexpr int kPairs = kSlots / 2;

  __device__ static constexpr unsigned Swizzle(unsigned row) {
    const unsigned bits = row / (8 / kSlots) % kSlots;
    return bits % 2 * kPairs + bits / 2;
  }
  // What of a slot's number follows from the line: rows are whole lines of 128 bytes, or of 64, which alternate.
  __device__ static constexpr unsigned LineSwap(unsigned line) { return kSlots == 8 ? line % 2 * kPairs : 0; }

  // Where a half of a row's chunk begins.
  __device__ static constexpr unsigned Offset(unsigned row, unsigned chunk, unsigned half) {
    const unsigned line = chunk / kPairs;
    const unsigned slot = (half * kPairs + chunk % kPairs) ^ LineSwap(line) ^ Swizzle(row);
    return row * kRowBytes + (line * kSlots + slot) * 16;
  }
};

// Shared memory behind Q: 8-bit buffers of K, of V, then the converted tiles: with KV_CONVERT 2 K's, and V's.
constexpr int kBytesBegin = Q_REGISTERS ? 0 : BLOCK_M * QueryTile::kRowBytes;
constexpr int kWideBegin = kBytesBegin + (K_STAGES + V_STAGES) * BLOCK_N * KeyTile::kRowBytes;
constexpr int kWideBytes = BLOCK_N * WideTile::kRowBytes;
constexpr int kWideValues = kWideBegin + (KV_CONVERT - 1) * kWideBytes;

// As LaneAddress, of blocks of 16 rows x 16 columns: those of a chunk. kTile is where the tile begins behind `shared`:
// the instruction adds it, as XOR leaves it alone.
template <int kTile>
class WideLaneAddress {
 public:
  // `shared` begins at a multiple of 128 bytes.
  __device__ WideLaneAddress(unsigned shared, unsigned row, unsigned half)
      : address_(shared + WideTile::Offset(row, 0, half)) {}

  __device__ unsigned At(int row_block, int chunk) const {
    const int line = chunk / WideTile::kPairs;
    const unsigned slot = (chunk % WideTile::kPairs) ^ WideTile::LineSwap(line);
    return (address_ ^ (slot * 16)) + kTile + line * (WideTile::kSlots * 16) + row_block * (16 * WideTile::kRowBytes);
  }

 private:
  unsigned address_;
};

// What one thread converts of a tile, beside other work: the chunks that `Copy`, a TileCopy of the 8-bit tile, has it
// copy. A chunk is read when the one before is stored, so that nothing waits for it.
template <class Copy>
class Conversion {
 public:
  // Of the tile at `bytes`, whose chunks of this thread have arrived, to that at `wide`.
  __device__ Conversion(unsigned bytes, unsigned wide, unsigned thread)
      : from_(bytes + KeyTile::ChunkOffset(Copy::Row(thread), Copy::Chunk(thread))),
        to_(wide + WideTile::Offset(Copy::Row(thread), Copy::Chunk(thread), 0)),
        row_(Copy::Row(thread)) {}

  // Part `part` of `parts`.
  __device__ void operator()(int part, int parts) {
#pragma unroll
    for (int chunk = kChunks * part / parts; chunk < kChunks * (part + 1) / parts; ++chunk) {
      if (chunk > 0) Store(chunk - 1);
      if (Has(chunk)) read_ = LoadShared16(Copy::Address(from_, chunk / kGroups, chunk % kGroups));
    }
  }

  // After the last part: the tile at `bytes` is free for this thread's copies.
  __device__ void Finish() { Store(kChunks - 1); }

  __device__ void All() {
    (*this)(0, 1);
    Finish();
  }

 private:
  static constexpr int kGroups = Copy::kRowChunks / Copy::kWide;
  static constexpr int kChunks = Copy::kPasses * kGroups;
  static constexpr int kGroupLines = Copy::kWide / WideTile::kPairs;
  static_assert(kGroupLines >= 1, "a group is of whole lines");

  // The last pass may have fewer rows than threads.
  __device__ bool Has(int chunk) const {
    return Copy::kKeys % Copy::kStep == 0 || row_ + chunk / kGroups * Copy::kStep < Copy::kKeys;
  }

  __device__ void Store(int chunk) const {
    if (!Has(chunk)) return;
    const int rows = chunk / kGroups * Copy::kStep;
    const int lines = chunk % kGroups * kGroupLines;
    const unsigned moved = (WideTile::Swizzle(rows % 8) ^ WideTile::LineSwap(lines)) * 16;
    const unsigned to = (to_ ^ moved) + rows * WideTile::kRowBytes + lines * (WideTile::kSlots * 16);
    StoreEight(to, read_.x, read_.y);
    StoreEight(to ^ (WideTile::kPairs * 16), read_.z, read_.w);
  }

  __device__ static void StoreEight(unsigned to, float first, float second) {
    unsigned pairs[4];
    Pairs(__float_as_uint(first), pairs[0], pairs[1]);
    Pairs(__float_as_uint(second), pairs[2], pairs[3]);
    const float bits[4] = {__uint_as_float(pairs[0]), __uint_as_float(pairs[1]), __uint_as_float(pairs[2]),
                           __uint_as_float(pairs[3])};
    StoreShared16(to, bits);
  }

  unsigned from_, to_;
  int row_;
  float4 read_;
};
#endif
