// What a compile worker, and a device worker whose kernels run on the CPU, may still see and take once they are caged.
// system_calls.h has the calls that they may make. docs/design.md (The cage) says what this keeps out, and what not.
//
// A worker of a GPU is not caged: what its driver needs has not been tried under any of this.
#ifndef ATTUNE_SERVER_WORKER_CAGE_H_
#define ATTUNE_SERVER_WORKER_CAGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/worker/limits.h"

namespace attune::worker {

// Where compilers, linkers and PoCL find what they are made of: libraries, the loader's cache, OpenCL's list of
// platforms, what the kernel says of processors and memory, and what the environment names.
std::vector<std::string> SystemFiles();

// Of the process: its limits. Of the calling thread, and of what it starts from then on: the files. `toolkit` is read,
// `scratch` also written; of all else there are names, sizes and modes to be seen, and nothing is opened. Several calls
// add up.
struct Walls {
  Limits limits;
  std::vector<std::string> toolkit;
  std::vector<std::string> scratch;
};
absl::Status Confine(const Walls& walls);

}  // namespace attune::worker

#endif  // ATTUNE_SERVER_WORKER_CAGE_H_
