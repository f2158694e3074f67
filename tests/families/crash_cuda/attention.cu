// BAD=1 writes to address 0: an illegal address, after which the context is of no use.
#include "common/row_cuda.cuh"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  *reinterpret_cast<volatile int*>(0) = 1;
#endif
}
