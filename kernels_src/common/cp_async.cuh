// Asynchronous copies from global to shared memory (sm_80 and later).
// PTX ISA, "Data Movement and Conversion Instructions: cp.async", non-bulk.
#pragma once

// 16 bytes; zeros are written instead when not `valid`, and `from` is then not read. Both addresses 16-byte aligned.
__device__ inline void CopyAsync16(void* to, const void* from, bool valid) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
}

// Closes the group of this thread's copies since the last one.
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `kPending` of this thread's groups are still under way.
template <int kPending>
__device__ inline void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
