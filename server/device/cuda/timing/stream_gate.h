// Holds a stream back until everything that is to follow without a gap has been queued.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TIMING_STREAM_GATE_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TIMING_STREAM_GATE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/owned.h"

namespace attune::device::cuda {

// The stream waits for a word in host memory that the device can see. Queue only little behind a closed gate: a full
// queue would block the thread that is to open it.
class StreamGate {
 public:
  // Needs a current context, which outlives it.
  static absl::StatusOr<std::unique_ptr<StreamGate>> Create(const DriverApi& api);

  // Closed from Close until Open, or until it is destroyed.
  class Closed {
   public:
    explicit Closed(StreamGate* gate) : gate_(gate) {}
    ~Closed() { Open(); }
    Closed(Closed&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Closed& operator=(Closed&&) = delete;
    void Open();

   private:
    StreamGate* gate_;
  };
  absl::StatusOr<Closed> Close(StreamHandle stream);

 private:
  explicit StreamGate(const DriverApi& api) : api_(api) {}

  const DriverApi& api_;
  HostMemory word_;  // a uint32_t
  DevicePointer address_ = 0;
  uint32_t ticket_ = 0;  // the stream waits for this value
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TIMING_STREAM_GATE_H_
