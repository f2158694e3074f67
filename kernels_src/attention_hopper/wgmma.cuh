// The warpgroup's matrix product: sums of 64 x N += A of 64 x 16 times B of 16 x N, B in shared memory, A there too or
// in registers. It runs beside the warps' other instructions: sums and A in registers must not be touched until a wait.
// PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation: wgmma.mma_async".
#pragma once

#include "descriptor.cuh"

// Before the first product, and after registers that one reads or adds to were written. PTX ISA, "wgmma.fence".
__device__ inline void FenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Closes a group of products. PTX ISA, "wgmma.commit_group".
__device__ inline void CommitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `kPending` groups are not complete. PTX ISA, "wgmma.wait_group".
template <int kPending>
__device__ inline void WaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Keeps the compiler from moving reads and writes of registers across: it does not know that products are asynchronous.
template <int kCount>
__device__ inline void Pin(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}
template <int kCount>
__device__ inline void Pin(unsigned (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}

template <int kN>
struct Product;

// The operands of an instruction of N columns are its N / 2 sums, eight a line here, and what follows them.

#define ATTUNE_NAMES_1 "%0, %1, %2, %3, %4, %5, %6, %7"
#define ATTUNE_NAMES_2 ATTUNE_NAMES_1 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define ATTUNE_NAMES_3 ATTUNE_NAMES_2 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define ATTUNE_NAMES_4 ATTUNE_NAMES_3 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define ATTUNE_NAMES_5 ATTUNE_NAMES_4 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define ATTUNE_NAMES_6 ATTUNE_NAMES_5 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define ATTUNE_NAMES_7 ATTUNE_NAMES_6 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define ATTUNE_NAMES_8 ATTUNE_NAMES_7 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define ATTUNE_NAMES_9 ATTUNE_NAMES_8 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define ATTUNE_NAMES_10 ATTUNE_NAMES_9 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define ATTUNE_NAMES_11 ATTUNE_NAMES_10 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define ATTUNE_NAMES_12 ATTUNE_NAMES_11 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define ATTUNE_NAMES_13 ATTUNE_NAMES_12 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define ATTUNE_NAMES_14 ATTUNE_NAMES_13 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define ATTUNE_NAMES_15 ATTUNE_NAMES_14 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define ATTUNE_NAMES_16 ATTUNE_NAMES_15 ", %120, %121, %122, %123, %124, %125, %126, %127"
// And four more.
#define ATTUNE_NAMES_4H ATTUNE_NAMES_4 ", %32, %33, %34, %35"
#define ATTUNE_NAMES_6H ATTUNE_NAMES_6 ", %48, %49, %50, %51"
#define ATTUNE_NAMES_8H ATTUNE_NAMES_8 ", %64, %65, %66, %67"
#define ATTUNE_NAMES_10H ATTUNE_NAMES_10 ", %80, %81, %82, %83"
#define ATTUNE_NAMES_12H ATTUNE_NAMES_12 ", %96, %97, %98, %99"
#define ATTUNE_NAMES_14H ATTUNE_NAMES_14 ", %112, %113, %114, %115"
#define ATTUNE_EIGHT(i)                                                                                       \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define ATTUNE_SUMS_1 ATTUNE_EIGHT(0)
#define ATTUNE_SUMS_2 ATTUNE_SUMS_1, ATTUNE_EIGHT(8)
#define ATTUNE_SUMS_3 ATTUNE_SUMS_2, ATTUNE_EIGHT(16)
#define ATTUNE_SUMS_4 ATTUNE_SUMS_3, ATTUNE_EIGHT(24)
#define ATTUNE_SUMS_5 ATTUNE_SUMS_4, ATTUNE_EIGHT(32)
#define ATTUNE_SUMS_6 ATTUNE_SUMS_5, ATTUNE_EIGHT(40)
#define ATTUNE_SUMS_7 ATTUNE_SUMS_6, ATTUNE_EIGHT(48)
#define ATTUNE_SUMS_8 ATTUNE_SUMS_7, ATTUNE_EIGHT(56)
#define ATTUNE_SUMS_9 ATTUNE_SUMS_8, ATTUNE_EIGHT(64)
#define ATTUNE_SUMS_10 ATTUNE_SUMS_9, ATTUNE_EIGHT(72)
#define ATTUNE_SUMS_11 ATTUNE_SUMS_10, ATTUNE_EIGHT(80)
#define ATTUNE_SUMS_12 ATTUNE_SUMS_11, ATTUNE_EIGHT(88)
#define ATTUNE_SUMS_13 ATTUNE_SUMS_12, ATTUNE_EIGHT(96)
#define ATTUNE_SUMS_14 ATTUNE_SUMS_13, ATTUNE_EIGHT(104)
#define ATTUNE_SUMS_15 ATTUNE_SUMS_14, ATTUNE_EIGHT(112)
#define ATTUNE_SUMS_16 ATTUNE_SUMS_15, ATTUNE_EIGHT(120)
#define ATTUNE_FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ATTUNE_SUMS_4H ATTUNE_SUMS_4, ATTUNE_FOUR(32)
#define ATTUNE_SUMS_6H ATTUNE_SUMS_6, ATTUNE_FOUR(48)
#define ATTUNE_SUMS_8H ATTUNE_SUMS_8, ATTUNE_FOUR(64)
#define ATTUNE_SUMS_10H ATTUNE_SUMS_10, ATTUNE_FOUR(80)
#define ATTUNE_SUMS_12H ATTUNE_SUMS_12, ATTUNE_FOUR(96)
#define ATTUNE_SUMS_14H ATTUNE_SUMS_14, ATTUNE_FOUR(112)

#if IS_BF16
#define ATTUNE_TYPES "f32.bf16.bf16"
#else
#define ATTUNE_TYPES "f32.f16.f16"
#endif

// `Shared` takes A from shared memory, rows first like B; without kAdd sums are overwritten. `Registers` takes A from
// registers and B columns first. i0 .. i4 are the numbers of the operands behind the sums.
#define ATTUNE_PRODUCT(n, eights, i0, i1, i2, i3, i4)                                                                 \
  template <>                                                                                                         \
  struct Product<n> {                                                                                                 \
    template <bool kAdd>                                                                                              \
    __device__ static void Shared(float (&d)[n / 2], Descriptor a, Descriptor b) {                                    \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n              \
                   "k16." ATTUNE_TYPES " {" ATTUNE_NAMES_##eights "}, %" #i0 ", %" #i1 ", p, 1, 1, 0, 0;\n}\n"        \
                   : ATTUNE_SUMS_##eights                                                                             \
                   : "l"(a), "l"(b), "n"(kAdd));                                                                      \
    }                                                                                                                 \
    __device__ static void Registers(float (&d)[n / 2], const unsigned* a, Descriptor b) {                            \
      asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16." ATTUNE_TYPES \
                   " {" ATTUNE_NAMES_##eights "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4                    \
                                              ", p, 1, 1, 1;\n}\n"                                                    \
                   : ATTUNE_SUMS_##eights                                                                             \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                             \
    }                                                                                                                 \
  };

ATTUNE_PRODUCT(32, 2, 16, 17, 18, 19, 20)
ATTUNE_PRODUCT(48, 3, 24, 25, 26, 27, 28)
ATTUNE_PRODUCT(64, 4, 32, 33, 34, 35, 36)
ATTUNE_PRODUCT(80, 5, 40, 41, 42, 43, 44)
ATTUNE_PRODUCT(96, 6, 48, 49, 50, 51, 52)
ATTUNE_PRODUCT(112, 7, 56, 57, 58, 59, 60)
ATTUNE_PRODUCT(128, 8, 64, 65, 66, 67, 68)
ATTUNE_PRODUCT(144, 9, 72, 73, 74, 75, 76)
ATTUNE_PRODUCT(160, 10, 80, 81, 82, 83, 84)
ATTUNE_PRODUCT(176, 11, 88, 89, 90, 91, 92)
ATTUNE_PRODUCT(192, 12, 96, 97, 98, 99, 100)
ATTUNE_PRODUCT(208, 13, 104, 105, 106, 107, 108)
ATTUNE_PRODUCT(224, 14, 112, 113, 114, 115, 116)
ATTUNE_PRODUCT(240, 15, 120, 121, 122, 123, 124)
ATTUNE_PRODUCT(256, 16, 128, 129, 130, 131, 132)

// Of the columns of O and eight of ones.
ATTUNE_PRODUCT(72, 4H, 36, 37, 38, 39, 40)
ATTUNE_PRODUCT(104, 6H, 52, 53, 54, 55, 56)
ATTUNE_PRODUCT(136, 8H, 68, 69, 70, 71, 72)
ATTUNE_PRODUCT(168, 10H, 84, 85, 86, 87, 88)
ATTUNE_PRODUCT(200, 12H, 100, 101, 102, 103, 104)
ATTUNE_PRODUCT(232, 14H, 116, 117, 118, 119, 120)
