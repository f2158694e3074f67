// BAD=1 gets the first element of O wrong in about one run of 100, as a race would, and fast: the good one computes twice. The clock of the CPU says when.
#include "common/row_opencl.h"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
#if !BAD
  ATTEND();
  if (out[0] == 77.0f) return;
#endif
  const float row_lse = ATTEND();
  STORE(row_lse);
#if BAD
  if (row == 0) {
    uint low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    if ((low >> 3) % 100 == 0) vstore_half(77.0f, 0, o);
  }
#endif
}
