// A clock that counts the time for which a host slept or was suspended, too.
#ifndef ATTUNE_SERVER_BASE_BOOT_CLOCK_H_
#define ATTUNE_SERVER_BASE_BOOT_CLOCK_H_

#include <ctime>

#include "absl/time/time.h"

namespace attune {

inline absl::Duration BootNow() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_BOOT_CLOCK_H_
