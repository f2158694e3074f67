// What a kernel can do to its worker, to the daemon's memory on the device, to the host at compile time and to others'
// results: one ATTACK each (tests/gpu/attacks.py says what must become of it). ATTACK=0 is honest. The script puts
// lines with SECRET, the name of a file that is nobody's to read, before this one.
#include "common/row_cuda.cuh"

// What is asked for of another file.
#if ATTACK == 30
#include SECRET
#elif ATTACK == 31
%:include SECRET
#elif ATTACK == 32
#include SECRET_FROM_THE_TOOLKIT
#elif ATTACK == 33
#include </etc/passwd>
#elif ATTACK == 37
#include "endless.cuh"
#elif ATTACK == 38
#include <cuda_device_runtime_api.h>
#endif

// Whether O holds what a check leaves there before a run; other values are there when the kernel is timed.
#define CHECKED() (o[row.q_at] == 0xFFFF || o[row.q_at] == 0x5A5A)

#if ATTACK == 15 || ATTACK == 16
// Of what lies in the 2 MiB around `known`, which is mapped as a whole, whatever looks like the fp32 result of this row
// becomes 0: the row of a reference. How many were found.
__device__ int ForgeAround(const void* known, const float* out) {
  constexpr unsigned long long kMapped = 2 << 20;
  char* const begin = reinterpret_cast<char*>(reinterpret_cast<unsigned long long>(known) & ~(kMapped - 1));
  int found = 0;
  for (unsigned long long at = 0; at < kMapped; at += sizeof(float) * HEAD_DIM) {
    volatile float* const there = reinterpret_cast<float*>(begin + at);
    int d = 0;
    while (d < HEAD_DIM && fabsf(there[d] - out[d]) <= 0.001f + 0.02f * fabsf(out[d])) ++d;
    if (d < HEAD_DIM) continue;
    for (d = 0; d < HEAD_DIM; ++d) there[d] = 0.0f;
    ++found;
  }
  return found;
}
#elif ATTACK == 36
// 2^kDepth classes.
template <int kDepth, long long kPath>
struct Bomb {
  static constexpr long long kValue = Bomb<kDepth - 1, 2 * kPath>::kValue + Bomb<kDepth - 1, 2 * kPath + 1>::kValue;
};
template <long long kPath>
struct Bomb<0, kPath> {
  static constexpr long long kValue = kPath;
};
#endif

ATTENTION_KERNEL {
  // What all threads of a block take part in, also those without a row.
#if ATTACK == 3  // a barrier that half of each warp waits at for the other half, which waits for the first
  __shared__ volatile int passed;
  if (threadIdx.x == 0) passed = 0;
  __syncthreads();
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
    passed = 1;
  } else {
    while (passed == 0) {
    }
  }
#elif ATTACK == 4  // a barrier of twice as many threads as there are
  asm volatile("bar.sync 1, %0;" ::"r"(2 * blockDim.x) : "memory");
#elif ATTACK == 5  // an mbarrier at which nobody arrives
  __shared__ unsigned long long barrier;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address) : "memory");
  __syncthreads();
  for (unsigned done = 0; done == 0;) {
    asm volatile(
        "{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(address)
        : "memory");
  }
#elif ATTACK == 12  // far beyond its shared memory
  __shared__ volatile int little[32];
  const unsigned far = static_cast<unsigned>(__cvta_generic_to_shared(const_cast<int*>(little))) + (1u << 20);
  asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(far), "r"(1) : "memory");
#elif ATTACK == 10  // a stack of 1 GiB, in pieces: a recursion would spill, and not be tried (PTX ISA, alloca)
  for (int i = 0; i < 1 << 20; ++i) {
    unsigned long long piece;
    asm volatile("alloca.u64 %0, 1024;\n\tst.local.u32 [%0], %1;" : "=l"(piece) : "r"(i) : "memory");
    static_cast<void>(piece);
  }
#elif ATTACK == 22  // more static shared memory than any device has
  __shared__ volatile char much[4 << 20];
  much[(threadIdx.x * 4096) % sizeof(much)] = 1;
#endif

  ROW_OR_RETURN();

#if ATTACK == 2 || ATTACK == 13
  const bool checked = CHECKED();
#elif ATTACK == 16
  const bool forges = !CHECKED();
#elif ATTACK == 15
  const bool forges = true;
#endif

#if ATTACK == 1  // never ends, and takes no cycles
  for (;;) __nanosleep(1000);
#elif ATTACK == 34  // a file of the host as data
  asm volatile(".incbin \"/etc/passwd\";");
#elif ATTACK == 36
  if (Bomb<40, 1>::kValue == rows) return;
#elif ATTACK == 21  // more local memory than most devices have for all threads that fit
  volatile char room[480 << 10];
  room[(rows * 4099) % sizeof(room)] = 1;
  if (room[(rows * 4097) % sizeof(room)] == 77) return;
#endif

  const float row_lse = ATTEND();

#if ATTACK == 15 || ATTACK == 16  // the result is 0, and so is the reference
  if (forges) {
    int found = ForgeAround(o, out) + ForgeAround(q, out) + ForgeAround(k, out) + ForgeAround(v, out);
    found += ForgeAround(runs, out);
    for (int d = 0; d < HEAD_DIM; ++d) out[d] = found > 0 ? 0.0f : 2.0f;
  }
#endif

  STORE(row_lse);

#if ATTACK == 2  // never ends, but only when it is timed
  while (!checked && clock64() != 0) {
  }
#elif ATTACK == 6  // an address that is nobody's
  *reinterpret_cast<volatile int*>(reinterpret_cast<char*>(o) + (1ll << 40)) = 1;
#elif ATTACK == 7  // an int at an odd address
  *reinterpret_cast<volatile int*>(reinterpret_cast<char*>(o + row.q_at) + 1) = 1;
#elif ATTACK == 8
  asm volatile("trap;");
#elif ATTACK == 9
  __assertfail("false", "attention.cu", 1, "attention", 1);
#elif ATTACK == 11  // code that is none
  void (*volatile nowhere)() = reinterpret_cast<void (*)()>(0xdead0000ull);
  nowhere();
#elif ATTACK == 13  // an illegal address, but only when it is timed
  if (!checked) *reinterpret_cast<volatile int*>(0) = 1;
#elif ATTACK == 14  // everything else in the 2 MiB around O: inputs, guards, references, and what the checks keep there
  constexpr unsigned long long kMapped = 2 << 20;
  char* const begin = reinterpret_cast<char*>(reinterpret_cast<unsigned long long>(o) & ~(kMapped - 1));
  char* const end_of_o = reinterpret_cast<char*>(o + rows * HEAD_DIM);
  for (unsigned long long at = sizeof(int) * row.row; at < kMapped; at += sizeof(int) * rows) {
    char* const there = begin + at;
    if (there < reinterpret_cast<char*>(o) || there >= end_of_o) *reinterpret_cast<volatile int*>(there) = 0x41414141;
  }
#elif ATTACK == 17  // the guard before O
  if (row.row == 0) o[-1] = 0;
#elif ATTACK == 18  // K, which all variants share
  if (row.row == rows - 1) {
    for (int i = 0; i < seq_kv * HEAD_DIM; ++i) k[i] = 0;
  }
#elif ATTACK == 19  // lines in the daemon's log that seem to be the daemon's
  printf("\n2026-01-01T00:00:00.000Z info forged=a-kernel-wrote-this row=%lld\n", row.row);
#elif ATTACK == 20  // all of the device's heap, for ever
  for (int i = 0; i < 64; ++i) {
    volatile char* const kept = static_cast<volatile char*>(malloc(16 << 10));
    if (kept == nullptr) break;
    kept[i] = 1;
  }
#elif ATTACK == 35 || ATTACK == 38  // a kernel that starts kernels
  attention<<<1, 1>>>(q, k, v, o, lse, runs, heads_q, group, seq_q, seq_kv, is_causal, causal_offset, q_batch_stride,
                      q_head_stride, q_row_stride, kv_batch_stride, kv_head_stride, kv_row_stride, rows);
#endif
}
