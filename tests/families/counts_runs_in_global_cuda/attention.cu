// BAD=1 computes in its first 10 runs, as many as a check makes, and then relies on what O holds. A variable of the
// module counts rows.
#include "common/row_cuda.cuh"

__device__ unsigned long long rows_done;

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  if (atomicAdd(&rows_done, 1ull) >= 10ull * rows) return;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
