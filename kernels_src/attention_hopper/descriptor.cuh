// How wgmma is told where an operand lies in shared memory.
//
//   bits 0..13   address / 16
//   bits 16..29  leading dimension's offset / 16
//   bits 32..45  stride dimension's offset / 16
//   bits 62..63  swizzle: 1 of 128 bytes, 2 of 64
//
// Both layouts here are made of eight rows of a panel, 8 x kPanelRowBytes, which the swizzle permutes:
//
//   Q, K   rows are M or N, columns are summed over (K-major): the stride leads to the next eight rows; the leading
//          offset is not used. 16 columns on is 32 bytes on.
//   V      rows are summed over, columns are N (MN-major, the instruction transposes): the stride leads to the next
//          eight keys, the leading offset to the next panel. 16 keys on is 16 rows on.
//
// PTX ISA, "Matrix Descriptor Format" and "Strides" of asynchronous warpgroup level matrix instructions.
#pragma once

#include "shape.cuh"

constexpr unsigned long long kSwizzleBits = kPanelRowBytes == 128 ? 1 : 2;

using Descriptor = unsigned long long;

__device__ inline Descriptor MakeDescriptor(unsigned shared, int leading_offset) {
  constexpr unsigned long long kStride = 8 * kPanelRowBytes / 16;
  return static_cast<unsigned long long>(shared / 16) | static_cast<unsigned long long>(leading_offset / 16) << 16 |
         kStride << 32 | kSwizzleBits << 62;
}

__device__ inline Descriptor RowsDescriptor(unsigned tile) { return MakeDescriptor(tile, 16); }
__device__ inline Descriptor ColumnsDescriptor(unsigned tile) { return MakeDescriptor(tile, BLOCK_N * kPanelRowBytes); }

__device__ inline Descriptor After(Descriptor from, int bytes) { return from + bytes / 16; }

// From a tile of `rows` rows to its `block`-th 16 columns.
__device__ constexpr int ColumnBlockOffset(int rows, int block) {
  constexpr int kBlocks = kPanel / 16;
  return block / kBlocks * rows * kPanelRowBytes + block % kBlocks * 32;
}
