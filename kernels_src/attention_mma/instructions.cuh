// The PTX instructions of this family, one wrapper each; all but the conversion of e4m3 exist from sm_80 on. Shared
// addresses are 32-bit.
#pragma once

#include "shape.cuh"

// Four 8 x 8 matrices of 16-bit elements. Lanes 8 i .. 8 i + 7 give the addresses of matrix i's rows, 16 bytes each.
// Lane l gets of every matrix row l / 4, elements 2 (l % 4) and the next.
// PTX ISA, "Warp Level Matrix Load Instruction: ldmatrix".
__device__ inline void LoadMatrices(unsigned (&to)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared)
               : "memory");
}

// The same, each matrix transposed: lane l gets column l / 4, rows 2 (l % 4) and the next.
__device__ inline void LoadMatricesTransposed(unsigned (&to)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared)
               : "memory");
}

// sums = from + A B, with A 16 x 16, B 16 x 8, sums 16 x 8 in fp32. With row = lane / 4 and pair = 2 (lane % 4), a lane
// has
//
//   A      a[0] (row, pair ..)   a[1] (row + 8, pair ..)   a[2] (row, pair + 8 ..)   a[3] (row + 8, pair + 8 ..)
//   B      low (pair .., row)    high (pair + 8 .., row)            i.e. column lane / 4
//   sums   [0], [1] (row, pair ..)   [2], [3] (row + 8, pair ..)
//
// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
__device__ inline void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high,
                                const float (&from)[4]) {
#if IS_BF16 && !KV_DTYPE
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
#endif
      "{%10, %11, %12, %13};"
      : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high), "f"(from[0]), "f"(from[1]), "f"(from[2]),
        "f"(from[3]));
}

// sums += A B.
__device__ inline void Multiply(float (&sums)[4], const unsigned (&a)[4], unsigned low, unsigned high) {
  Multiply(sums, a, low, high, sums);
}

#if KV_DTYPE
// (low, high) in fp16. PTX ISA, "Data Movement and Conversion: cvt", .f16x2.f32.
__device__ inline unsigned Halves(float low, float high) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Four e4m3 in fp16, which has all of their values: bytes 0 and 1, bytes 2 and 3. NaN is NaN.
// PTX ISA, "Data Movement and Conversion: cvt", .f16x2.e4m3x2; from sm_89 on.
__device__ inline void HalvesOfE4m3(unsigned bytes, unsigned& low, unsigned& high) {
  asm("{\n\t.reg .b16 lower, upper;\n\tmov.b32 {lower, upper}, %2;\n\t"
      "cvt.rn.f16x2.e4m3x2 %0, lower;\n\tcvt.rn.f16x2.e4m3x2 %1, upper;\n\t}"
      : "=r"(low), "=r"(high)
      : "r"(bytes));
}

__device__ inline uint2 LoadShared8(unsigned shared) {
  uint2 to;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(to.x), "=r"(to.y) : "r"(shared) : "memory");
  return to;
}

__device__ inline void StoreShared8(unsigned shared, unsigned first, unsigned second) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(shared), "r"(first), "r"(second) : "memory");
}
#endif

// Starts copying 16 bytes to shared memory, past L1. PTX ISA, "Data Movement and Conversion: cp.async".
__device__ inline void StartCopy16(unsigned shared, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

// The same, or zeros where not `valid`; `from` is then not read.
__device__ inline void StartCopy16(unsigned shared, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes)
               : "memory");
}

// Waits for `threads` threads, whole warps, at one of the CTA's 16 barriers. PTX ISA, "Parallel Synchronization: bar".
__device__ inline void SyncBarrier(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// `x` of lane 0: what is the same in all lanes then also is so for the compiler, which has registers of their own for
// it. PTX ISA, "Data Movement and Conversion: shfl.sync".
__device__ inline unsigned Uniform(unsigned x) { return __shfl_sync(0xffffffffu, x, 0); }

// `x`, hiding from the compiler what it is: what it has computed from `x` before is not kept until now in registers.
__device__ inline unsigned Opaque(unsigned x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Adds 1 and returns what was there; orders this thread's memory accesses, and those that it has seen through a
// barrier, before it for other CTAs and theirs before it for this one. PTX ISA, "Parallel Synchronization: atom",
// .acq_rel.
__device__ inline unsigned TakeTicket(unsigned* tickets) {
  unsigned ticket;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(tickets) : "memory");
  return ticket;
}

__device__ inline unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ inline void StoreShared4(unsigned shared, unsigned value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(value) : "memory");
}

__device__ inline void StoreShared16(unsigned shared, const float (&values)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "f"(values[0]), "f"(values[1]), "f"(values[2]),
               "f"(values[3])
               : "memory");
}

__device__ inline float4 LoadShared16(unsigned shared) {
  float4 to;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(to.x), "=f"(to.y), "=f"(to.z), "=f"(to.w)
               : "r"(shared)
               : "memory");
  return to;
}
