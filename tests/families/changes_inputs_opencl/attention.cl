// BAD=1 overwrites the first element of its row of Q once nobody needs it any more: O is right.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  vstore_half(0.0f, q_at, q);
#endif
}
