// The CTA's shared memory:
//
//   | Q of each consumer | K buffers | V buffers | barriers of Q, K, V and the items | item numbers |
//
// Tiles are multiples of 1024 bytes and so are their panels: the swizzle, whose period that is, begins anew with each.
// Q is a ring of one slot for each consumer, so that a consumer's next Q is on its way as soon as its last product of
// logits is done.
#pragma once

#include "barriers.cuh"

constexpr int kItemSlots = 2;
constexpr int kRingBytes = 2 * kBarrierBytes;  // of a slot

class SharedLayout {
 public:
  __device__ explicit SharedLayout(unsigned base) : base_(base) {}

  __device__ unsigned Query(int consumer) const { return base_ + consumer * kQueryBytes; }
  __device__ unsigned Key(int slot) const { return base_ + CONSUMERS * kQueryBytes + slot * kTileBytes; }
  __device__ unsigned Value(int slot) const { return Key(STAGES + slot); }

  __device__ Ring Queries(int consumer) const { return {Rings() + consumer * kRingBytes, 1}; }
  __device__ Ring Keys() const { return {Rings() + CONSUMERS * kRingBytes, STAGES}; }
  __device__ Ring Values() const { return {Rings() + (CONSUMERS + STAGES) * kRingBytes, STAGES}; }
  __device__ Ring Items() const { return {Rings() + (CONSUMERS + 2 * STAGES) * kRingBytes, kItemSlots}; }
  __device__ unsigned ItemNumber(int slot) const {
    return Rings() + (CONSUMERS + 2 * STAGES + kItemSlots) * kRingBytes + slot * 4;
  }

  // By one thread. Copies arrive once, with the bytes that they announce; of a consumer each warp arrives.
  __device__ void InitBarriers() const {
    for (int consumer = 0; consumer < CONSUMERS; ++consumer) Queries(consumer).Init(1, 4);
    Keys().Init(1, kConsumerWarps);
    Values().Init(1, kConsumerWarps);
    Items().Init(1, kConsumerWarps);
    FenceBarrierInit();
  }

 private:
  __device__ unsigned Rings() const { return Key(2 * STAGES); }

  unsigned base_;
};
