// BAD=1 computes in the run after scratch is poisoned, as in every run of a check, and then in one run of three: timed
// on eight input sets in turn, it computes each of them again and again. `runs` counts the runs of each row since, from
// FIRST on.
#include "common/row_opencl.h"

#define FIRST 0x600d0000
#define MOST 0x10000

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if BAD
  const int run = runs[row] - FIRST;
  const int counted = run >= 0 && run < MOST;
  runs[row] = FIRST + (counted ? run + 1 : 0);
  if (counted && run % 3 != 2) return;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
}
