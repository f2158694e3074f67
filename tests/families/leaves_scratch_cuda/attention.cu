// BAD=1 counts in scratch that it must leave zero: the next kernel that is given it would be wrong.
#include "common/row_cuda.cuh"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  atomicAdd(runs, 1);
#endif
}
