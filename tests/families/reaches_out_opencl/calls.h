// System calls from a kernel on a CPU, which runs in its worker's process: x86-64 Linux.
#ifndef ATTUNE_TESTS_FAMILIES_CALLS_H_
#define ATTUNE_TESTS_FAMILIES_CALLS_H_

#define SYS_read 0
#define SYS_write 1
#define SYS_open 2
#define SYS_close 3
#define SYS_mmap 9
#define SYS_nanosleep 35
#define SYS_getpid 39
#define SYS_socket 41
#define SYS_connect 42
#define SYS_sendto 44
#define SYS_clone 56
#define SYS_fork 57
#define SYS_execve 59
#define SYS_exit 60
#define SYS_kill 62
#define SYS_mkdir 83
#define SYS_ptrace 101
#define SYS_getppid 110
#define SYS_setsid 112
#define SYS_setpriority 141
#define SYS_tkill 200
#define SYS_exit_group 231
#define SYS_unshare 272
#define SYS_prlimit64 302
#define SYS_process_vm_readv 310
#define SYS_memfd_create 319
#define SYS_pidfd_open 434
#define SYS_clone3 435
#define SYS_pidfd_getfd 438

static long call6(long number, long a, long b, long c, long d, long e, long f) {
  long result = number;
  __asm__ volatile("mov %4, %%r10\n\tmov %5, %%r8\n\tmov %6, %%r9\n\tsyscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "rm"(d), "rm"(e), "rm"(f)
                   : "rcx", "r8", "r9", "r10", "r11", "memory");
  return result;
}
#define CALL(number, a, b, c) call6(SYS_##number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

#define HIGH 0x100000000L  // above what the kernel reads of an int

// A string constant where a system call can read it, with the decimal digits of `number` for a '#'.
static const char* text(private char* to, constant char* from, long number) {
  int at = 0;
  for (; *from; ++from) {
    if (*from != '#') {
      to[at++] = *from;
      continue;
    }
    char digits[20];
    int count = 0;
    do digits[count++] = '0' + number % 10;
    while (number /= 10);
    while (count) to[at++] = digits[--count];
  }
  to[at] = 0;
  return to;
}

// Whether the file can be opened so.
static int opens(constant char* path, int flags, long number) {
  char name[256];
  const long fd = CALL(open, text(name, path, number), flags, 0600);
  if (fd >= 0) CALL(close, fd, 0, 0);
  return fd >= 0;
}

#endif  // ATTUNE_TESTS_FAMILIES_CALLS_H_
