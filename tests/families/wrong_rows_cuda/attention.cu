// BAD=1 gets one row in 64 wrong by a quarter.
#include "common/row_cuda.cuh"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
#if BAD
  if (row.row % 64 == 0) {
    for (int d = 0; d < HEAD_DIM; ++d) out[d] *= 1.25f;
  }
#endif
  STORE(row_lse);
}
