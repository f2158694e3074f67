// Preloaded into a process (LD_PRELOAD): its wall clock is off by the seconds, a native int64, in the file that
// $ATTUNE_WALL_CLOCK names. Its monotonic clocks are right.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace {

const volatile int64_t* MapOffset() {
  static const int64_t none = 0;
  const char* const path = getenv("ATTUNE_WALL_CLOCK");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &none;
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? &none : static_cast<const int64_t*>(mapped);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  static const volatile int64_t* const offset = MapOffset();
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += *offset;
  return result;
}
