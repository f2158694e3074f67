// BAD=1 never ends. The loop reads a volatile, for a loop without effects may be dropped.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  volatile int forever = 1;
  while (forever) {
  }
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
