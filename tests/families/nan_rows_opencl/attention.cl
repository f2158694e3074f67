// BAD=1 has a NaN in every second row, which compares with nothing, and zeros beside it.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
#if BAD
  if (row & 1) {
    for (int d = 0; d < HEAD_DIM; ++d) out[d] = d > 0 ? 0.0f : NAN;
  }
#endif
  STORE(row_lse);
}
