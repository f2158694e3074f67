// What a caged worker may take of the host, and the privileges that it gives up.
#ifndef ATTUNE_SERVER_WORKER_LIMITS_H_
#define ATTUNE_SERVER_WORKER_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace attune::worker {

struct Limits {
  int64_t memory_bytes = 0;  // private and writable: heaps and stacks, not the address space set aside for them
  int64_t file_bytes = 0;    // of one file
  int64_t open_files = 0;
};

// 8 GiB or the host's memory: some times what a compile of this project's takes.
Limits LimitsOfCompiler();
// Problems fill the device's memory, which is the host's, and no more than that.
Limits LimitsOfDevice();

// None is raised. A sanitizer's shadow, which is nobody's memory, is not limited. The OOM killer takes this process
// before the daemon, where this may be said: a process that cannot be traced may not, but root's.
absl::Status LimitResources(const Limits& limits);

// Drops every capability of the calling thread and of what it starts, for ever: a worker of root's is no more than a
// user that owns root's files.
absl::Status DropCapabilities();

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_LIMITS_H_
