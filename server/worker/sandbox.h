// What a worker process gives up before it opens a driver, a compiler or a kernel.
#ifndef ATTUNE_SERVER_WORKER_SANDBOX_H_
#define ATTUNE_SERVER_WORKER_SANDBOX_H_

#include "absl/status/status.h"

namespace attune::worker {

// Dies with the thread that started it; gains no privileges by exec; cannot be traced and dumps no core.
absl::Status HardenProcess();

// From here on these fail with EPERM, for this process, its threads and all that it starts (PoCL runs a linker):
// sockets other than local ones and netlink; signals to other processes, the daemon above all; other processes' memory,
// descriptors and limits; leaving the process group, so that whoever kills the group leaves nobody behind; tracing,
// mounting, kernel modules, keys, BPF and the like. Drivers and compilers need none of these.
absl::Status DenySystemCalls();

// In its place for tools that look into another process and speak to it over the network's loopback, as profilers do:
// only what nobody needs who is no administrator. From here on setsid and setpgid do nothing and say that they have
// succeeded, so that all that is started stays in the process group.
absl::Status DenySystemCallsOfTools();

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_SANDBOX_H_
