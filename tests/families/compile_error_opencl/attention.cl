// BAD=1 does not compile.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  this line is no statement;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
