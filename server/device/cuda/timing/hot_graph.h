// Back-to-back runs as one CUDA graph, timed by events that are its first and last node: nothing that the host does
// lies between them.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TIMING_HOT_GRAPH_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TIMING_HOT_GRAPH_H_

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
#include "server/device/cuda/work_clock.h"

namespace attune::device::cuda {

class HotGraph {
 public:
  // Captures `runs` runs, run i of runnables[i % size], and replays them once where they are several.
  static absl::StatusOr<HotGraph> Create(const DriverApi& api, StreamHandle stream,
                                         absl::Span<CudaRunnable* const> runnables, int runs, WorkClock& clock);

  // Replays it; seconds of one run. The clock counts all of them.
  absl::StatusOr<double> Time() const;

 private:
  HotGraph(const DriverApi& api, StreamHandle stream, int runs, WorkClock& clock)
      : api_(&api), stream_(stream), clock_(&clock), runs_(runs) {}
  absl::Status Capture(absl::Span<CudaRunnable* const> runnables, Graph* graph) const;

  const DriverApi* api_;
  StreamHandle stream_;
  WorkClock* clock_;
  int runs_;
  Event start_, stop_;
  GraphExec executable_;
};

// The graphs used last: a sample is a replay, and only the first one of a contestant a capture.
class HotGraphs {
 public:
  // All outlive it.
  HotGraphs(const DriverApi& api, StreamHandle stream, WorkClock& clock) : api_(api), stream_(stream), clock_(clock) {}

  absl::StatusOr<double> Time(absl::Span<CudaRunnable* const> runnables, int runs);

 private:
  struct Entry {
    std::vector<uint64_t> key;  // runs and the runnables' ids
    HotGraph graph;
  };

  const DriverApi& api_;
  const StreamHandle stream_;
  WorkClock& clock_;
  std::list<Entry> entries_;  // the one used last is first
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TIMING_HOT_GRAPH_H_
