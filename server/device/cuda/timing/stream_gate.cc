#include "server/device/cuda/timing/stream_gate.h"

#include <atomic>

namespace attune::device::cuda {

absl::StatusOr<std::unique_ptr<StreamGate>> StreamGate::Create(const DriverApi& api) {
  std::unique_ptr<StreamGate> gate(new StreamGate(api));
  void* word = nullptr;
  ATTUNE_CUDA_CALL(api, MemHostAlloc, &word, sizeof(uint32_t), kHostAllocDeviceMapped);
  *static_cast<uint32_t*>(word) = 0;
  gate->word_ = HostMemory(api, word);
  ATTUNE_CUDA_CALL(api, MemHostGetDevicePointer, &gate->address_, word, 0);
  return gate;
}

absl::StatusOr<StreamGate::Closed> StreamGate::Close(StreamHandle stream) {
  ++ticket_;
  ATTUNE_CUDA_CALL(api_, StreamWaitValue32, stream, address_, ticket_, kStreamWaitValueGreaterOrEqual);
  return Closed(this);
}

void StreamGate::Closed::Open() {
  if (gate_ == nullptr) return;
  std::atomic_ref<uint32_t>(*static_cast<uint32_t*>(gate_->word_.get()))
      .store(gate_->ticket_, std::memory_order_release);
  gate_ = nullptr;
}

}  // namespace attune::device::cuda
