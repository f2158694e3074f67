// Adds up how long kernels have run on the device: what lies between two events around each piece of work that is
// waited for. The rest of a job's time on the device is the host's doing.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_WORK_CLOCK_H_
#define ATTUNE_SERVER_DEVICE_CUDA_WORK_CLOCK_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"

namespace attune::device::cuda {

// One thread.
class WorkClock {
 public:
  // Needs a current context. `api` and `stream` outlive it.
  static absl::StatusOr<std::unique_ptr<WorkClock>> Create(const DriverApi& api, StreamHandle stream) {
    std::unique_ptr<WorkClock> clock(new WorkClock(api, stream));
    for (Event* event : {&clock->start_, &clock->stop_}) {
      EventHandle handle = nullptr;
      ATTUNE_CUDA_CALL(api, EventCreate, &handle, kEventDefault);
      *event = Event(api, handle);
    }
    return clock;
  }

  // Before work is queued on the stream; one that is followed by another Begin counts for nothing.
  absl::Status Begin() {
    ATTUNE_CUDA_CALL(api_, EventRecord, start_.get(), stream_);
    return absl::OkStatus();
  }
  // After it: waits for the stream, and counts.
  absl::Status EndAndWait() {
    ATTUNE_CUDA_CALL(api_, EventRecord, stop_.get(), stream_);
    ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
    float milliseconds = 0;
    ATTUNE_CUDA_CALL(api_, EventElapsedTime, &milliseconds, start_.get(), stop_.get());
    Add(absl::Milliseconds(milliseconds));
    return absl::OkStatus();
  }
  // What something else has timed.
  void Add(absl::Duration worked) { total_ += worked; }

  absl::Duration total() const { return total_; }

 private:
  WorkClock(const DriverApi& api, StreamHandle stream) : api_(api), stream_(stream) {}

  const DriverApi& api_;
  const StreamHandle stream_;
  Event start_, stop_;
  absl::Duration total_;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_WORK_CLOCK_H_
