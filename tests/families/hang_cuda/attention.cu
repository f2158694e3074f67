// BAD=1 never ends. The loop reads the clock, for a loop without effects may be dropped.
#include "common/row_cuda.cuh"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  while (clock64() != 0) {
  }
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
