// In place of kernels_src/common/cp_async.cuh.
#pragma once

inline void CommitCopies() { emulation::running->CommitCopies(); }

template <int kPending>
void WaitCopies() {
  emulation::running->WaitCopies(kPending);
}
