// Bulk tensor copies into shared memory and the barrier they end at, for one thread that copies and a block that waits.
#pragma once

// As the driver encodes it: CUtensorMap.
struct alignas(128) TensorMap {
  unsigned long long opaque[16];
};

__device__ inline unsigned SharedAddress(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// PTX ISA, "mbarrier.init": for one arrival a phase. The fence makes it known to copies (PTX ISA, "fence.proxy").
__device__ inline void InitBarrier(unsigned long long* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(barrier)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The phase's one arrival; `bytes` more must land before it ends. A box counts whole, what lies beyond the tensor, too.
__device__ inline void ExpectBytes(unsigned long long* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(bytes)
               : "memory");
}

__device__ inline void WaitForBarrier(unsigned long long* barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred landed;\n"
      "WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 landed, [%0], %1;\n"
      "@!landed bra WAIT;\n"
      "}\n" ::"r"(SharedAddress(barrier)),
      "r"(parity)
      : "memory");
}

// PTX ISA, "cp.async.bulk.tensor": the box at (x, y, z, w), innermost coordinate first, to `to`.
__device__ inline void CopyBox(void* to, const TensorMap& map, int x, int y, int z, int w,
                               unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(SharedAddress(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(SharedAddress(barrier))
      : "memory");
}
