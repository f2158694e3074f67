// Times one run whose inputs are not in L2, and whose writes do not wait for those of others.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TIMING_COLD_TIMER_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TIMING_COLD_TIMER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/device.pb.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"
#include "server/device/cuda/runnable.h"
#include "server/device/cuda/timing/stream_gate.h"
#include "server/device/cuda/work_clock.h"

namespace attune::device::cuda {

// L2 is flushed by reading a buffer of twice its size: what was written is written back, and the lines that take its
// place are clean. Flushed by writing, L2 would be full of lines that the timed run has to have written back first.
class ColdTimer {
 public:
  // Needs a current context. All outlive it.
  static absl::StatusOr<std::unique_ptr<ColdTimer>> Create(const DriverApi& api, StreamHandle stream,
                                                           const v1::Device& info, WorkClock& clock);

  // Seconds of one run, queued with the flush behind a blocked stream.
  absl::StatusOr<double> Time(CudaRunnable& runnable);

  // The steps in which events count time, as seen between pairs of them.
  absl::Duration resolution() const { return resolution_; }

 private:
  ColdTimer(const DriverApi& api, StreamHandle stream, const v1::Device& info, WorkClock& clock);
  // Reads the first `bytes` of the buffer.
  absl::Status Read(size_t bytes);
  absl::Status MeasureResolution();
  absl::StatusOr<double> Elapsed() const;  // ms between the events, once the stream has come to the second

  const DriverApi& api_;
  const StreamHandle stream_;
  const size_t bytes_;
  const unsigned ctas_;
  WorkClock& clock_;
  std::unique_ptr<StreamGate> gate_;
  LoadedModule module_;
  FunctionHandle read_ = nullptr;
  Memory buffer_;  // zeros
  Event start_, stop_;
  absl::Duration resolution_;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TIMING_COLD_TIMER_H_
