// Barriers in shared memory (mbarrier), rings of buffers that pass between producer and consumers, and the barriers
// that consumers take turns by.
//
// An mbarrier completes a phase when the arrivals that it was initialised for have come, and the bytes that were
// announced with them. A ring's slot has two: `full` is completed by the copies into the slot, `empty` by an arrival of
// each consumer warp that has read it. Whoever waits for a slot's n-th phase passes the parity n % 2. The producer
// begins with parity 1 of `empty`: that is the phase before the first, which counts as complete. PTX ISA, "Parallel
// Synchronization: mbarrier".
#pragma once

#include "shape.cuh"

__device__ inline unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

constexpr int kBarrierBytes = 8;

__device__ inline void InitBarrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// After initialising, before the barrier that lets other threads and the copy engine use them.
__device__ inline void FenceBarrierInit() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void Arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ inline void ArriveExpecting(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Whether the phase is complete; the hardware lets the thread sleep for a while before it says no.
__device__ inline bool TryWait(unsigned barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ inline void Wait(unsigned barrier, unsigned parity) {
#ifdef WAIT_LIMIT_CLOCKS  // for tests: a wait that would never end gives wrong results instead
  const long long begin = clock64();
  while (!TryWait(barrier, parity) && clock64() - begin < WAIT_LIMIT_CLOCKS) {
  }
#else
  while (!TryWait(barrier, parity)) {
  }
#endif
}

// The barriers of a ring of `slots`: all `full`, then all `empty`.
struct Ring {
  unsigned barriers;
  int slots;

  __device__ unsigned Full(int slot) const { return barriers + slot * kBarrierBytes; }
  __device__ unsigned Empty(int slot) const { return barriers + (slots + slot) * kBarrierBytes; }
  __device__ void Init(int full_arrivals, int empty_arrivals) const {
    for (int slot = 0; slot < slots; ++slot) {
      InitBarrier(Full(slot), full_arrivals);
      InitBarrier(Empty(slot), empty_arrivals);
    }
  }
};

// Where a thread is in a ring.
struct Place {
  int slot = 0;
  unsigned parity = 0;

  __device__ void Advance(int slots) {
    if (++slot == slots) {
      slot = 0;
      parity ^= 1;
    }
  }
};

// The CTA's 16 other barriers, each for `threads` threads. PTX ISA, "Parallel Synchronization: bar".
__device__ inline void SyncNamed(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ inline void ArriveNamed(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// `x` of lane 0: what is the same in all lanes then also is so for the compiler. PTX ISA, "shfl.sync".
__device__ inline unsigned Uniform(unsigned x) { return __shfl_sync(0xffffffffu, x, 0); }
