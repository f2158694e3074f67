// The CTA's shared memory:
//
//   | Q of each row group | K buffers | V buffers | what teams merge | barriers of Q, K, V, items | item numbers |
//
// Tiles are multiples of 1024 bytes and so are their panels: the swizzle, whose period that is, begins anew with each.
// With ONES a panel of ones, which no copy changes, is behind each tile of V.
// Q is a ring of one slot for each row group, so that its next Q is on its way as soon as its last product of logits is
// done.
#pragma once

#include "barriers.cuh"

constexpr int kItemSlots = 2;
constexpr int kRingBytes = 2 * kBarrierBytes;                                     // of a slot
constexpr int kOnesBytes = ONES ? BLOCK_N * kPanelRowBytes : 0;
constexpr int kValueBytes = kTileBytes + kOnesBytes;
constexpr int kMergeBytes = TEAMS > 1 ? (HEAD_DIM / 2 + 4) * 4 * kWarpgroup : 0;  // merge.cuh

class SharedLayout {
 public:
  __device__ explicit SharedLayout(unsigned base) : base_(base) {}

  __device__ unsigned Query(int rows) const { return base_ + rows * kQueryBytes; }
  __device__ unsigned Key(int slot) const { return base_ + kRowGroups * kQueryBytes + slot * kTileBytes; }
  __device__ unsigned Value(int slot) const { return Key(STAGES) + slot * kValueBytes; }

  __device__ unsigned Merge() const { return Value(STAGES); }

  __device__ Ring Queries(int rows) const { return {Rings() + rows * kRingBytes, 1}; }
  __device__ Ring Keys() const { return {Rings() + kRowGroups * kRingBytes, STAGES}; }
  __device__ Ring Values() const { return {Rings() + (kRowGroups + STAGES) * kRingBytes, STAGES}; }
  __device__ Ring Items() const { return {Rings() + (kRowGroups + 2 * STAGES) * kRingBytes, kItemSlots}; }
  __device__ unsigned ItemNumber(int slot) const {
    return Rings() + (kRowGroups + 2 * STAGES + kItemSlots) * kRingBytes + slot * 4;
  }

  // By all threads, before the barrier after which products read them. PTX ISA, "Async proxy".
  __device__ void FillOnes() const {
    constexpr unsigned kPair = IS_BF16 ? 0x3f803f80 : 0x3c003c00;
    for (int slot = 0; slot < STAGES; ++slot) {
      const unsigned ones = Value(slot) + kTileBytes;
      for (int at = threadIdx.x * 16; at < kOnesBytes; at += kThreads * 16) {
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(ones + at), "r"(kPair) : "memory");
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }

  // By one thread. Copies arrive once, with the bytes that they announce; of a consumer each warp arrives.
  __device__ void InitBarriers() const {
    for (int rows = 0; rows < kRowGroups; ++rows) Queries(rows).Init(1, 4 * TEAMS);
    Keys().Init(1, kConsumerWarps);
    Values().Init(1, kConsumerWarps);
    Items().Init(1, kConsumerWarps);
    FenceBarrierInit();
  }

 private:
  __device__ unsigned Rings() const { return Merge() + kMergeBytes; }

  unsigned base_;
};
