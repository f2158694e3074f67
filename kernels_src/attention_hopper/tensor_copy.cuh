// Copies by the tensor memory accelerator: a box of a tensor that the driver has described, into shared memory.
#pragma once

#include "barriers.cuh"
#include "sequence.cuh"

// The driver's CUtensorMap, whose header NVRTC cannot read: opaque, made by cuTensorMapEncodeTiled.
struct alignas(128) TensorMap {
  unsigned long long opaque[16];
};
static_assert(sizeof(TensorMap) == 128, "as the driver has it");

__device__ inline void Prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Where a box begins: {column, row, head, batch, 0}, or with packed heads {column, head, row, batch, 0}.
//
// The maps of K and V with kOwnLengths, and that of Q with VARLEN, do not know where a sequence ends. They are ragged:
// rows end at 2^30, and two more dimensions, of strides s (a row's) and 2^35 - s, lead from rows [2^30 - n, 2^30) to
// the n rows of a slice, because addresses wrap around: with e the number of the row behind the slice,
//
//   (2^30 - n) s + e s + 2^30 (2^35 - s) = (e - n) s  modulo 2^64
//
// P. Tillet et al., Triton, python/triton/tools/ragged_tma.py.
struct Box {
  int row, head, batch, wrap;  // `batch`: of a ragged map e
};

constexpr int kRaggedRows = 1 << 30;

__device__ inline Box RaggedBox(const Slice& slice, int head) {
  return {kRaggedRows - slice.rows, head, slice.first + slice.rows, kRaggedRows};
}

// Starts copying a box; what lies outside of the tensor or the slice arrives as zeros. The box's bytes, zeros included,
// count towards the barrier's phase.
// PTX ISA, "Data Movement and Conversion: cp.async.bulk.tensor".
template <bool kHeadsFirst>
__device__ inline void IssueBoxCopy(unsigned shared, const TensorMap& map, int column, const Box& box,
                                    unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared),
      "l"(&map), "r"(column), "r"(kHeadsFirst ? box.head : box.row), "r"(kHeadsFirst ? box.row : box.head),
      "r"(box.batch), "r"(box.wrap), "r"(barrier)
      : "memory");
}

// The same for all HEAD_DIM columns of rows that begin at `shared` in a tile of `tile_rows`, panel by panel.
template <bool kHeadsFirst>
__device__ inline void IssueRowsCopy(unsigned shared, const TensorMap& map, int tile_rows, const Box& box,
                                     unsigned barrier) {
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    IssueBoxCopy<kHeadsFirst>(shared + panel * tile_rows * kPanelRowBytes, map, panel * kPanel, box, barrier);
  }
}
