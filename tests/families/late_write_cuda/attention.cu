// BAD=1 writes what the run before it computed, which it finds in `runs`, and leaves its own result there.
#include "common/row_cuda.cuh"

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
#if BAD
  float* late = (float*)runs + row.row * HEAD_DIM;
  for (int d = 0; d < HEAD_DIM; ++d) {
    const float now = out[d];
    out[d] = late[d];
    late[d] = now;
  }
#endif
  STORE(row_lse);
}
