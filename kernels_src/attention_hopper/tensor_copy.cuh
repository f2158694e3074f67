// Copies by the tensor memory accelerator: a box of a tensor that the driver has described, into shared memory.
#pragma once

#include "barriers.cuh"

// The driver's CUtensorMap, whose header NVRTC cannot read: opaque, made by cuTensorMapEncodeTiled.
struct alignas(128) TensorMap {
  unsigned long long opaque[16];
};
static_assert(sizeof(TensorMap) == 128, "as the driver has it");

__device__ inline void Prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Starts copying the box at {column, row, head, batch}; what lies outside of the tensor arrives as zeros. The box's
// bytes, zeros included, count towards the barrier's phase.
// PTX ISA, "Data Movement and Conversion: cp.async.bulk.tensor".
__device__ inline void StartBox(unsigned shared, const TensorMap& map, int column, int row, int head, int batch,
                                unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(shared),
      "l"(&map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(barrier)
      : "memory");
}

// The same for a tile of all HEAD_DIM columns and `rows` rows, panel by panel.
__device__ inline void StartTile(unsigned shared, const TensorMap& map, int rows, int row, int head, int batch,
                                 unsigned barrier) {
  ArriveExpecting(barrier, rows * HEAD_DIM * 2);
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    StartBox(shared + panel * rows * kPanelRowBytes, map, panel * kPanel, row, head, batch, barrier);
  }
}
