// Takes sixteen times as long while the file /tmp/attune-test-slow exists: a regression that needs no change of
// source or artifact. For x86-64 CPUs under Linux: a kernel there is host code, which may make system calls.
#include "common/row_opencl.h"

constant char slow_file[] = "/tmp/attune-test-slow";

// access(2), system call 21.
int is_slow(void) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(21L), "D"((ulong)slow_file), "S"(0L) : "rcx", "r11", "memory");
  return result == 0;
}

ATTENTION_KERNEL {
  local int repeats;
  if (get_local_id(0) == 0) repeats = is_slow() ? 16 : 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  ROW_OR_RETURN();
  for (int n = 0; n < repeats; ++n) {
    const float row_lse = ATTEND();
    STORE(row_lse);
  }
}
