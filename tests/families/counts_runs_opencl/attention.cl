// BAD=1 computes in its first 8 runs, as many as a check makes, and then relies on what O holds. `runs` counts rows.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  if (atomic_inc(runs) >= 8 * rows) return;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
