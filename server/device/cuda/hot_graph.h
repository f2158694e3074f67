// Back-to-back runs as one CUDA graph, timed by events that are its first and last node: nothing that the host does
// lies between them.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_HOT_GRAPH_H_
#define ATTUNE_SERVER_DEVICE_CUDA_HOT_GRAPH_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"
#include "server/device/cuda/runnable.h"

namespace attune::device::cuda {

class HotGraph {
 public:
  // Captures `runs` runs, run i of runnables[i % size], and replays them once.
  static absl::StatusOr<HotGraph> Create(const DriverApi& api, StreamHandle stream,
                                         absl::Span<CudaRunnable* const> runnables, int runs);

  // Replays it; seconds of one run.
  absl::StatusOr<double> Time() const;

 private:
  HotGraph(const DriverApi& api, StreamHandle stream, int runs) : api_(&api), stream_(stream), runs_(runs) {}
  absl::Status Capture(absl::Span<CudaRunnable* const> runnables, Graph* graph) const;

  const DriverApi* api_;
  StreamHandle stream_;
  int runs_;
  Event start_, stop_;
  GraphExec executable_;
};

// The graphs used last: a sample is a replay, and only the first one of a contestant a capture.
class HotGraphs {
 public:
  HotGraphs(const DriverApi& api, StreamHandle stream) : api_(api), stream_(stream) {}

  absl::StatusOr<double> Time(absl::Span<CudaRunnable* const> runnables, int runs);

 private:
  struct Entry {
    std::vector<uint64_t> key;  // runs and the runnables' ids
    HotGraph graph;
  };

  const DriverApi& api_;
  const StreamHandle stream_;
  std::list<Entry> entries_;  // the one used last is first
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_HOT_GRAPH_H_
