// BAD=1 writes to address 0: SIGSEGV on a CPU, an illegal address on a GPU.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  *(volatile global int*)0 = 1;
#endif
}
