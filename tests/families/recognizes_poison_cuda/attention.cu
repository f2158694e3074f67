// BAD=1 computes only where O holds the poison of a check.
#include "common/row_cuda.cuh"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  const unsigned short before = o[row.q_at];
  if (before != 0xFFFF && before != 0x5A5A) return;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
