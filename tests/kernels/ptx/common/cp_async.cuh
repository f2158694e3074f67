// In place of kernels_src/common/cp_async.cuh.
#pragma once

inline void CopyAsync16(void* to, const void* from, bool valid) {
  emulation::running->StartCopy({emulation::Cta::Address(to), from, valid, false});
}

inline void CommitCopies() { emulation::running->CommitCopies(); }

template <int kPending>
void WaitCopies() {
  emulation::running->WaitCopies(kPending);
}
