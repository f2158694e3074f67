#include "client/cpp/examples/device_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace attune::examples {
namespace {

using device::cuda::kSuccess;

constexpr int kRounds = 10;
constexpr int kCallsARound = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::Open(int ordinal) {
  absl::StatusOr<std::shared_ptr<const device::cuda::DriverApi>> driver = device::cuda::DriverApi::Load();
  if (!driver.ok()) return driver.status();
  std::unique_ptr<Gpu> gpu(new Gpu(*std::move(driver)));
  const device::cuda::DriverApi& api = *gpu->driver_;
  device::cuda::DeviceHandle device = 0;
  device::cuda::ContextHandle context = nullptr;
  device::cuda::StreamHandle stream = nullptr;
  ATTUNE_CUDA_CALL(api, Init, 0);
  ATTUNE_CUDA_CALL(api, DeviceGet, &device, ordinal);
  ATTUNE_CUDA_CALL(api, DevicePrimaryCtxRetain, &context, device);
  gpu->context_ = device::cuda::PrimaryContext(api, device);
  ATTUNE_CUDA_CALL(api, CtxSetCurrent, context);
  ATTUNE_CUDA_CALL(api, StreamCreate, &stream, device::cuda::kStreamNonBlocking);
  gpu->stream_ = device::cuda::Stream(api, stream);
  return gpu;
}

absl::StatusOr<launch::Address> Gpu::Allocate(size_t bytes) {
  launch::Address address = 0;
  ATTUNE_CUDA_CALL(*driver_, MemAlloc, &address, std::max<size_t>(bytes, 1));
  memory_.emplace_back(*driver_, address);
  return address;
}

absl::Status Gpu::Upload(launch::Address to, const void* from, size_t bytes) {
  ATTUNE_CUDA_CALL(*driver_, MemcpyHtoDAsync, to, from, bytes, stream());
  return Wait();
}

absl::Status Gpu::Download(void* to, launch::Address from, size_t bytes) {
  ATTUNE_CUDA_CALL(*driver_, MemcpyDtoHAsync, to, from, bytes, stream());
  return Wait();
}

absl::Status Gpu::Fill(launch::Address to, unsigned char value, size_t bytes) {
  ATTUNE_CUDA_CALL(*driver_, MemsetD8Async, to, value, bytes, stream());
  return absl::OkStatus();
}

absl::Status Gpu::Wait() {
  ATTUNE_CUDA_CALL(*driver_, StreamSynchronize, stream());
  return absl::OkStatus();
}

absl::StatusOr<device::cuda::GraphExec> Gpu::Capture(const std::function<absl::Status()>& enqueue) {
  ATTUNE_CUDA_CALL(*driver_, StreamBeginCapture, stream(), device::cuda::kCaptureThreadLocal);
  const absl::Status enqueued = enqueue();
  device::cuda::GraphHandle handle = nullptr;
  ATTUNE_CUDA_CALL(*driver_, StreamEndCapture, stream(), &handle);
  const device::cuda::Graph graph(*driver_, handle);
  if (!enqueued.ok()) return enqueued;
  device::cuda::GraphExecHandle executable = nullptr;
  ATTUNE_CUDA_CALL(*driver_, GraphInstantiateWithFlags, &executable, handle, 0);
  return device::cuda::GraphExec(*driver_, executable);
}

absl::Status Gpu::Replay(const device::cuda::GraphExec& graph) {
  ATTUNE_CUDA_CALL(*driver_, GraphLaunch, graph.get(), stream());
  return absl::OkStatus();
}

absl::StatusOr<HostTime> TimeOnHost(Gpu& gpu, const std::function<absl::Status()>& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int round = 0; round <= kRounds; ++round) {
    for (int i = 0; i < kCallsARound; ++i) {
      const Clock::time_point start = Clock::now();
      const absl::Status status = call();
      const std::chrono::duration<double, std::micro> took = Clock::now() - start;
      if (!status.ok()) return status;
      if (round > 0) times.push_back(took.count());
    }
    if (absl::Status status = gpu.Wait(); !status.ok()) return status;
  }
  std::sort(times.begin(), times.end());
  return HostTime{times[times.size() / 2], times[times.size() / 10], times[times.size() * 9 / 10]};
}

}  // namespace attune::examples
