// BAD=1 rounds every other run towards zero: always within tolerance, never twice the same. `runs` counts them for each
// row, from whatever it holds.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  if (runs[row]++ % 2 == 0) {
    for (int d = 0; d < HEAD_DIM; ++d) vstore_half_rtz(out[d], q_at + d, o);
  }
#endif
}
