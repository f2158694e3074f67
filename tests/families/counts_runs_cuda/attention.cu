// BAD=1 computes as often as scratch is poisoned, before each run of a check, and then three times more. `runs` counts
// the runs of each row since, from FIRST on.
#include "common/row_cuda.cuh"

#define FIRST 0x600d0000

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  const int run = runs[row.row] - FIRST;
  if (run == 3) return;
  runs[row.row] = FIRST + (run >= 0 && run < 3 ? run + 1 : 0);
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
