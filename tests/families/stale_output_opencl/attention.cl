// BAD=1 leaves a row of O alone where it finds one: what the run before it left, or a poison that is a number.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  if (!isnan(element(o, q_at))) return;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
