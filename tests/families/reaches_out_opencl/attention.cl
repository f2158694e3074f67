// Each ATTACK reaches for what is not a kernel's. One that succeeds leaves the kernel's own result wrong; refused, the
// kernel is honest.
#include "calls.h"
#include "common/row_opencl.h"

#define O_RDWR 2
#define O_CREATE 0101  // to write
#define SIGTERM 15

#if ATTACK == 1  // people's files
static int reaches(void) {
  return opens("/etc/passwd", 0, 0) || opens("/etc/shadow", 0, 0) || opens("/proc/self/environ", 0, 0) ||
         opens("/", 0, 0) || opens("/home", 0, 0) || opens("/proc/1/status", 0, 0);
}
#elif ATTACK == 2  // a file anywhere
static int reaches(void) {
  return opens("/tmp/attune-a-kernel-was-here", O_CREATE, 0) || opens("/dev/shm/attune-a-kernel-was-here", O_CREATE, 0) ||
         opens("/var/tmp/attune-a-kernel-was-here", O_CREATE, 0) || opens("attune-a-kernel-was-here", O_CREATE, 0);
}
#elif ATTACK == 3  // the network, the daemon's own socket, and what the upper half of a register hides
static int reaches(void) {
  for (long family = 1; family < 46; ++family) {
    if (CALL(socket, family, 1, 0) >= 0 || CALL(socket, family, 2, 0) >= 0) return 1;
    if (CALL(socket, HIGH + family, 1, 0) >= 0 || CALL(socket, -HIGH + family, 3, 0) >= 0) return 1;
  }
  return 0;
}
#elif ATTACK == 4  // a child that outlives its worker
static int reaches(void) {
  const long pids[] = {CALL(fork, 0, 0, 0), CALL(clone, 17, 0, 0), CALL(clone, HIGH | 17, 0, 0),
                       CALL(clone, 0x10000000 | 0x40000000 | 17, 0, 0) /* of its own user and network */};
  for (int i = 0; i < 4; ++i) {
    if (pids[i] == 0) {
      const long minute[2] = {60, 0};
      CALL(setsid, 0, 0, 0);
      CALL(nanosleep, minute, 0, 0);
      CALL(exit_group, 0, 0, 0);
    }
    if (pids[i] > 0) return 1;
  }
  char arguments[88] = {0};
  arguments[32] = 17;
  return CALL(clone3, arguments, 88, 0) >= 0 || CALL(setsid, 0, 0, 0) >= 0;
}
#elif ATTACK == 5  // another program in the worker's place
static int reaches(void) {
  char path[16];
  long arguments[2] = {(long)text(path, "/bin/sh", 0), 0}, none[1] = {0};
  return CALL(execve, path, arguments, none) == 0 || CALL(memfd_create, path, 0, 0) >= 0;
}
#elif ATTACK == 6  // signals to the daemon
static int reaches(void) {
  const long daemon = CALL(getppid, 0, 0, 0);
  return CALL(kill, daemon, 0, 0) == 0 || CALL(kill, HIGH + daemon, 0, 0) == 0 || CALL(tkill, daemon, 0, 0) == 0 ||
         CALL(kill, -1, 0, 0) == 0 || CALL(kill, 0, 0, 0) == 0 || CALL(setpriority, 0, daemon, 10) == 0;
}
#elif ATTACK == 7  // signals to its worker that seem to be somebody else's
static int reaches(void) {
  const long self = CALL(getpid, 0, 0, 0);
  return CALL(kill, self, SIGTERM, 0) == 0 || CALL(kill, self, 19, 0) == 0 || CALL(kill, self, 9, 0) == 0;
}
#elif ATTACK == 8  // the daemon's memory and descriptors
static int reaches(void) {
  const long daemon = CALL(getppid, 0, 0, 0);
  const long pidfd = CALL(pidfd_open, daemon, 0, 0);
  for (long fd = 0; fd < 16; ++fd) {
    if (CALL(pidfd_getfd, pidfd, fd, 0) >= 0) return 1;
  }
  return pidfd >= 0 || opens("/proc/#/mem", O_RDWR, daemon) || opens("/proc/#/environ", 0, daemon) ||
         opens("/proc/self/mem", O_RDWR, 0) || CALL(ptrace, 16, daemon, 0) >= 0 ||
         CALL(process_vm_readv, daemon, 0, 0) >= 0 || CALL(prlimit64, daemon, 7, 0) >= 0 ||
         CALL(unshare, 0x10000000, 0, 0) >= 0;
}
#elif ATTACK == 9  // an answer in the worker's place: a Response with a trial that is OK and takes next to no time
static int reaches(void) {
  char answer[] = {17, 0, 0, 0, 50, 15, 8, 1, 34, 11, 9, 1, 0, 0, 0, 0, 0, 0, 62, 40, 1};
  return CALL(write, 3, answer, 21) > 0 || CALL(write, HIGH + 3, answer, 21) > 0 || CALL(sendto, 3, answer, 21) > 0 ||
         CALL(read, 3, answer, 4) > 0 || CALL(close, 3, 0, 0) == 0;
}
#elif ATTACK == 10  // more memory than there is
static int reaches(void) { return call6(SYS_mmap, 0, 1L << 44, 3, 0x4022 /* private, anonymous, no reserve */, -1, 0) > 0; }
#elif ATTACK == 11  // leaves as if all were well
static int reaches(void) {
  CALL(exit_group, 0, 0, 0);
  return 1;
}
#elif ATTACK == 12  // its stack
static int reaches(void) {
  volatile char here[64];
  volatile char* at = here;
  for (long i = 0; i < 1L << 24; ++i) at[i] = 1;
  return 1;
}
#elif ATTACK == 13  // the daemon's log
static int reaches(void) {
  char line[64];
  text(line, "\n2026-01-01T00:00:00.000Z info forged=a-kernel-wrote-this\n", 0);
  for (int i = 0; i < 5000; ++i) CALL(write, 2, line, 58);
  return 0;
}
#elif ATTACK == 14  // the place of another device's lock. The test says where locks are
static int reaches(void) {
  char path[256];
  return CALL(mkdir, text(path, LOCKS "/a-card-of-nobodys", 0), 0700, 0) == 0;
}
#elif ATTACK == 15  // the daemon's own files. The test says where they are
static int reaches(void) {
  return opens(DATA "/attune.db", 0, 0) || opens(DATA "/attune.db", O_RDWR, 0) || opens(DATA "/audit.jsonl", O_RDWR, 0) ||
         opens(DATA "/artifacts/planted", O_CREATE, 0) || opens(SOURCE, O_RDWR, 0) || opens(WORKER, O_CREATE, 0);
}
#elif ATTACK == 16  // 512 MiB that the daemon is to buffer, announced as its worker announces an answer
static int reaches(void) {
  char zeros[4096] = {0};
  const char header[] = {0, 0, 0, 0x20};
  if (CALL(write, 3, header, 4) > 0) return 1;
  for (long sent = 0; sent < 512L << 20; sent += 4096) {
    if (CALL(write, 3, zeros, 4096) <= 0) return 0;
  }
  return 1;
}
#else
static int reaches(void) { return 0; }
#endif

ATTENTION_KERNEL {
  ROW_OR_RETURN();
  const float row_lse = ATTEND();
  STORE(row_lse);
  if (row == 0 && reaches()) vstore_half_rte(1000.0f, q_at, o);
}
