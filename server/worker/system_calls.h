// Which system calls a caged thread, and what it starts from then on, may make: those that compilers and PoCL need.
// Arguments are compared in the bits that the kernel reads, so that what stands in a register's upper half changes
// nothing. What is not allowed fails with EPERM, and clone3 with ENOSYS: its flags are in memory, where a filter cannot
// see them, and libc goes on with clone. Calls of another architecture (int 0x80, x32) kill the process with SIGSYS.
#ifndef ATTUNE_SERVER_WORKER_SYSTEM_CALLS_H_
#define ATTUNE_SERVER_WORKER_SYSTEM_CALLS_H_

#include "absl/status/status.h"

namespace attune::worker {

// The conversation with the daemon, files (landlock.h says which), memory, threads, clocks, and starting a linker.
// No sockets, no namespaces, no signal but to itself, no way out of the process group, nobody else's memory,
// descriptors, limits or priority, no file without a name (memfd), no tracing, keys, io_uring or BPF.
absl::Status AllowCallsOfWorker();

// For the thread that opens PoCL, and so for the threads of PoCL's that run kernels: of the above without starting
// processes, without opening files to write, renaming or removing them, without writing to anything but standard output
// and error, and without `daemon_fd`, the descriptor of the conversation: a kernel cannot answer in its worker's place
// but by way of its worker's memory. Descriptors of kFirstKept and above cannot be read or closed, so that what holds
// a lock stays open.
absl::Status AllowCallsOfKernels(int daemon_fd);

constexpr int kFirstKept = 512;

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_SYSTEM_CALLS_H_
