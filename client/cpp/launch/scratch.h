// Scratch memory: who may use which, and for how long.
//
// A stream runs its launches in order, so that all plans launched on it share one arena, if no thread's launches come
// between another's: the arena's mutex sees to that. Other streams have arenas of their own, kept as long as the
// runtime.
//
// A captured graph may be replayed on any stream, at any time, so that it owns an arena for each stream that was
// captured, until the graph and every executable made from it are destroyed. The memory then serves the next capture.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_SCRATCH_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_SCRATCH_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/launch/allocator.h"
#include "client/cpp/launch/gpu.h"
#include "client/cpp/launch/tensors.h"

namespace attune::launch {

// Memory in the order of one stream, in two parts: what is zero between any two runs, and the rest. `mutex` is held
// while its parts are asked for and a plan's launches are enqueued.
struct Arena {
  struct Chunk {
    Address address = 0;
    size_t bytes = 0;
  };
  std::mutex mutex;
  Chunk zeroed, other;
  cuda::GraphHandle graph = nullptr;  // that is being captured, of such an arena
};

// Thread-safe. The GPU's context is current in every call.
class Scratch {
 public:
  // `allocator` outlives this.
  Scratch(std::shared_ptr<const Gpu> gpu, ScratchAllocator* allocator);
  // Frees all but what a graph that is still there may write to.
  ~Scratch();

  Arena& OfStream(Stream stream);
  // The arena of a stream that is capturing. Internal when `stream` is not, or its capture was invalidated.
  absl::StatusOr<std::shared_ptr<Arena>> OfCapture(Stream stream);

  // Makes the arena's parts at least so large; its mutex is held. What was there before stays allocated: work that is
  // queued may use it. ResourceExhausted and the like are the allocator's.
  absl::Status Reserve(Arena& arena, size_t zeroed, size_t other, Stream stream);

 private:
  struct GraphChunk;
  struct Capture;
  struct Allocation {
    Arena::Chunk chunk;
    Stream stream;
  };
  absl::StatusOr<Arena::Chunk> ForStream(size_t bytes, bool zeroed, Stream stream);
  absl::StatusOr<Arena::Chunk> ForGraph(size_t bytes, bool zeroed, cuda::GraphHandle graph);
  absl::StatusOr<std::shared_ptr<GraphChunk>> UnusedOrNew(size_t bytes);
  absl::Status GiveToGraph(const std::shared_ptr<GraphChunk>& chunk, cuda::GraphHandle graph);
  absl::StatusOr<Stream> Side();

  const std::shared_ptr<const Gpu> gpu_;
  ScratchAllocator* const allocator_;
  std::shared_mutex streams_mutex_;  // guards of_streams_
  absl::flat_hash_map<std::pair<Stream, uint64_t>, std::unique_ptr<Arena>> of_streams_;
  std::mutex mutex_;                     // guards what follows
  std::vector<Allocation> allocations_;  // of streams' arenas
  std::deque<std::shared_ptr<Capture>> captures_;
  std::vector<std::shared_ptr<GraphChunk>> graph_chunks_;
  // That no work but this file's is given to: memory allocated on it was nobody's before.
  cuda::Stream side_;
};

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_SCRATCH_H_
