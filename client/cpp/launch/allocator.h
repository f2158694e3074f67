// Where a runtime's scratch memory comes from.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_ALLOCATOR_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_ALLOCATOR_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "client/cpp/launch/tensors.h"

namespace attune::launch {

// Thread-safe; outlives the runtime that it is given to. Called with the GPU's context current, seldom: when a stream
// first needs scratch memory, or more than before, and when a graph is captured. The runtime's locks are held: it must
// neither call the runtime nor wait for a thread that may be in Run.
class ScratchAllocator {
 public:
  virtual ~ScratchAllocator() = default;
  // `bytes` of device memory for work in the order of `stream`, at a multiple of 256. Not part of a graph that is being
  // captured. An error is what the launch returns that needed the memory; nothing was launched then.
  virtual absl::StatusOr<Address> Allocate(size_t bytes, Stream stream) = 0;
  // Memory that it allocated, when the runtime is destroyed and all work in it has ended; the stream of the handle may
  // be gone. Never called for the memory of a captured graph that is still there.
  virtual void Free(Address address, size_t bytes, Stream stream) = 0;
};

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_ALLOCATOR_H_
