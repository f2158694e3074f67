// BAD=1 computes where O lies where it lay in this scratch's first run, as in every run of a check, and nowhere else.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  const int here = (int)((ulong)o >> 8) & 0xffffff, first = runs[row] - 0x01000000;
  if (first >= 0 && first <= 0xffffff && first != here) return;
  runs[row] = here + 0x01000000;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
