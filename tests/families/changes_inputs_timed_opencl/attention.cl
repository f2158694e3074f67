// BAD=1 overwrites the first element of its row of Q after use, but only where O does not hold the poison of a check: when
// it is timed. O is right in the first such run.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  const ushort before = ((global ushort*)o)[q_at];
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  if (before != 0xFFFF && before != 0x5A5A) vstore_half(0.0f, q_at, q);
#endif
}
