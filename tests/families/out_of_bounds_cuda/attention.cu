// BAD=1 writes 3 elements behind the end of O, beside a right result.
#include "common/row_cuda.cuh"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  if (row.row == rows - 1) {
    for (int d = 0; d < 3; ++d) o[rows * HEAD_DIM + d] = 0;
  }
#endif
}
