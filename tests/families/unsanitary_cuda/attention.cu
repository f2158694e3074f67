// Right in its results, wrong in its manners; each is for one tool of compute-sanitizer to report
// (tests/gpu/sanitize.py).
//
//   BAD 1   racecheck   reads what another warp writes to shared memory, without a barrier between the two
//   BAD 2   initcheck   reads scratch that nobody has written
//   BAD 3   synccheck   a barrier for one half of a warp that the other half comes to
//   BAD 4   memcheck    reads one element behind K
//   BAD 5   racecheck   as 1, written by an asynchronous copy that is waited for, but only by the thread that began it
#include "common/row_cuda.cuh"

constexpr int kThreads = 128;

__device__ inline void CopyAsync(void* shared, const void* global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(global) : "memory");
}

ATTENTION_KERNEL {
  __shared__ int slots[kThreads];
  const int other = (threadIdx.x + kThreads / 2) % kThreads;
#if BAD == 1
  slots[threadIdx.x] = threadIdx.x;
  if (slots[other] == -1) return;
#elif BAD == 5
  CopyAsync(&slots[threadIdx.x], q + 2 * threadIdx.x);
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (slots[other] == 0x7e017e01) return;  // two NaNs, which Q has not
#else
  slots[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (slots[other] == -1) return;
#endif
#if BAD == 2
  if (runs[threadIdx.x] == 123456789) return;
#endif
  ROW_OR_RETURN();
#if BAD == 4
  if (Element(k, rows / seq_q / heads_q * kv_batch_stride) == 12345.0f) return;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD == 3
  if (threadIdx.x % 32 >= 16) __syncwarp(0x0000ffffu);
#endif
}
