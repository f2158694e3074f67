// BAD=1 writes O in its first run only and afterwards relies on finding it there. `runs` counts rows.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
#if BAD
  if (atomic_inc(runs) >= rows) return;
#endif
  STORE(row_lse);
}
