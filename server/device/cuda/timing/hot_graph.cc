#include "server/device/cuda/timing/hot_graph.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace attune::device::cuda {
namespace {

// As many as a play-off has contestants, and some; a graph of 1000 kernels takes about a megabyte of device memory.
constexpr size_t kCachedGraphs = 16;

}  // namespace

absl::Status HotGraph::Capture(absl::Span<CudaRunnable* const> runnables, Graph* graph) const {
  ATTUNE_CUDA_CALL(*api_, StreamBeginCapture, stream_, kCaptureThreadLocal);
  const auto record = [&]() -> absl::Status {
    ATTUNE_CUDA_CALL(*api_, EventRecordWithFlags, start_.get(), stream_, kEventRecordExternal);
    for (int i = 0; i < runs_; ++i) {
      absl::Status status = runnables[static_cast<size_t>(i) % runnables.size()]->Enqueue();
      if (!status.ok()) return status;
    }
    ATTUNE_CUDA_CALL(*api_, EventRecordWithFlags, stop_.get(), stream_, kEventRecordExternal);
    return absl::OkStatus();
  };
  absl::Status recorded = record();
  // Ended even after an error: the stream would stay in capture.
  GraphHandle handle = nullptr;
  const Result ended = api_->StreamEndCapture(stream_, &handle);
  if (handle != nullptr) *graph = Graph(*api_, handle);
  if (!recorded.ok()) return recorded;
  return ended == kSuccess ? absl::OkStatus() : api_->Error("cuStreamEndCapture", ended);
}

absl::StatusOr<HotGraph> HotGraph::Create(const DriverApi& api, StreamHandle stream,
                                          absl::Span<CudaRunnable* const> runnables, int runs, WorkClock& clock) {
  HotGraph hot(api, stream, runs, clock);
  for (Event* event : {&hot.start_, &hot.stop_}) {
    EventHandle handle = nullptr;
    ATTUNE_CUDA_CALL(api, EventCreate, &handle, kEventDefault);
    *event = Event(api, handle);
  }
  Graph graph;
  if (absl::Status status = hot.Capture(runnables, &graph); !status.ok()) return status;
  GraphExecHandle executable = nullptr;
  ATTUNE_CUDA_CALL(api, GraphInstantiateWithFlags, &executable, graph.get(), 0);
  hot.executable_ = GraphExec(api, executable);
  ATTUNE_CUDA_CALL(api, GraphUpload, executable, stream);
  // A single run that is long is not repeated for what its launch adds; who wants the time of a short one replays it.
  if (runs > 1) {
    if (absl::StatusOr<double> warm_up = hot.Time(); !warm_up.ok()) return warm_up.status();
  }
  return hot;
}

absl::StatusOr<double> HotGraph::Time() const {
  ATTUNE_CUDA_CALL(*api_, GraphLaunch, executable_.get(), stream_);
  ATTUNE_CUDA_CALL(*api_, StreamSynchronize, stream_);
  float milliseconds = 0;
  ATTUNE_CUDA_CALL(*api_, EventElapsedTime, &milliseconds, start_.get(), stop_.get());
  clock_->Add(absl::Milliseconds(milliseconds));
  return static_cast<double>(milliseconds) / 1e3 / runs_;
}

absl::StatusOr<double> HotGraphs::Time(absl::Span<CudaRunnable* const> runnables, int runs) {
  std::vector<uint64_t> key = {static_cast<uint64_t>(runs)};
  for (const CudaRunnable* runnable : runnables) key.push_back(runnable->id());
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    absl::StatusOr<HotGraph> graph = HotGraph::Create(api_, stream_, runnables, runs, clock_);
    if (!graph.ok()) return graph.status();
    entries_.push_front({std::move(key), *std::move(graph)});
    if (entries_.size() > kCachedGraphs) entries_.pop_back();
  }
  return entries_.front().graph.Time();
}

}  // namespace attune::device::cuda
