#include "server/daemon/memory_trim.h"

#include <malloc.h>

#include <stop_token>

#include "server/base/pause.h"

namespace attune {

MemoryTrim::MemoryTrim(absl::Duration period)
    : thread_([period](const std::stop_token& stop) {
        while (Pause(stop, period)) malloc_trim(0);
      }) {}

}  // namespace attune
