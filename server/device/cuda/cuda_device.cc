#include "server/device/cuda/cuda_device.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune::device::cuda {
namespace {

absl::Status CheckRange(const Buffer& buffer, size_t offset, size_t bytes) {
  if (offset <= buffer.size() && bytes <= buffer.size() - offset) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(bytes, " bytes at offset ", offset, "; the buffer has ", buffer.size()));
}

DevicePointer AddressIn(const Buffer& buffer, size_t offset) {
  return static_cast<const CudaBuffer&>(buffer).address() + offset;
}

}  // namespace

CudaDevice::CudaDevice(std::shared_ptr<const DriverApi> api, std::shared_ptr<const NvmlApi> nvml, v1::Device info)
    : api_(std::move(api)), info_(std::move(info)), telemetry_(std::move(nvml), info_.uuid()) {}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(std::shared_ptr<const DriverApi> api,
                                                             std::shared_ptr<const NvmlApi> nvml, int ordinal,
                                                             v1::Device info, const std::string& check_kernels) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(api), std::move(nvml), std::move(info)));
  const DriverApi& driver = *device->api_;
  DeviceHandle handle = 0;
  ATTUNE_CUDA_CALL(driver, DeviceGet, &handle, ordinal);
  // Spinning wakes up soonest. A context that is already there keeps its way of waiting.
  const Result flags = driver.DevicePrimaryCtxSetFlags(handle, kContextScheduleSpin);
  if (flags != kSuccess && flags != kPrimaryContextActive) return driver.Error("cuDevicePrimaryCtxSetFlags", flags);
  ContextHandle context = nullptr;
  ATTUNE_CUDA_CALL(driver, DevicePrimaryCtxRetain, &context, handle);
  device->context_ = PrimaryContext(driver, handle);
  ATTUNE_CUDA_CALL(driver, CtxSetCurrent, context);
  StreamHandle stream = nullptr;
  ATTUNE_CUDA_CALL(driver, StreamCreate, &stream, kStreamNonBlocking);
  device->stream_ = Stream(driver, stream);
  absl::StatusOr<std::unique_ptr<WorkClock>> clock = WorkClock::Create(driver, stream);
  if (!clock.ok()) return clock.status();
  device->work_clock_ = *std::move(clock);
  device->staging_ = std::make_unique<Staging>(driver, stream);
  if (!check_kernels.empty()) {
    absl::StatusOr<std::unique_ptr<CudaInspector>> inspector =
        CudaInspector::Create(driver, stream, check_kernels, *device->work_clock_);
    if (!inspector.ok()) return inspector.status();
    device->inspector_ = *std::move(inspector);
  }
  device->hot_graphs_ = std::make_unique<HotGraphs>(driver, stream, *device->work_clock_);
  if (absl::StatusOr<std::unique_ptr<ClockProbe>> probe = ClockProbe::Create(driver, stream); probe.ok()) {
    device->clock_probe_ = *std::move(probe);
  }
  return device;
}

absl::StatusOr<std::unique_ptr<Buffer>> CudaDevice::Allocate(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("bytes is 0; it must be at least 1");
  DevicePointer pointer = 0;
  if (const Result result = api_->MemAlloc(&pointer, bytes); result != kSuccess) {
    const absl::Status status = api_->Error("cuMemAlloc", result);
    return absl::Status(status.code(), absl::StrCat(status.message(), " (", bytes, " bytes)"));
  }
  return std::make_unique<CudaBuffer>(Memory(*api_, pointer), bytes);
}

absl::Status CudaDevice::Upload(Buffer& to, size_t offset, absl::Span<const std::byte> from) {
  if (absl::Status status = CheckRange(to, offset, from.size()); !status.ok() || from.empty()) return status;
  return staging_->Upload(AddressIn(to, offset), from);
}

absl::Status CudaDevice::Download(const Buffer& from, size_t offset, absl::Span<std::byte> to) {
  if (absl::Status status = CheckRange(from, offset, to.size()); !status.ok() || to.empty()) return status;
  return staging_->Download(AddressIn(from, offset), to);
}

absl::Status CudaDevice::Fill(Buffer& to, size_t offset, size_t bytes, std::byte value) {
  if (absl::Status status = CheckRange(to, offset, bytes); !status.ok() || bytes == 0) return status;
  ATTUNE_CUDA_CALL(*api_, MemsetD8Async, AddressIn(to, offset), static_cast<unsigned char>(value), bytes,
                   stream_.get());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Module>> CudaDevice::Load(absl::Span<const std::byte> artifact) {
  // PTX must end in a zero byte; a cubin knows its length and does not mind one more.
  const std::string image(reinterpret_cast<const char*>(artifact.data()), artifact.size());
  std::vector<char> log(8192, '\0');
  JitOption options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSizeBytes};
  // The driver takes the size in place of a pointer.
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};  // NOLINT(performance-no-int-to-ptr)
  ModuleHandle module = nullptr;
  if (const Result result = api_->ModuleLoadDataEx(&module, image.c_str(), 2, options, values); result != kSuccess) {
    const absl::Status status = api_->Error("cuModuleLoadDataEx", result);
    const absl::string_view detail = log.data();
    return absl::Status(status.code(), absl::StrCat(status.message(), " (artifact of ", artifact.size(), " bytes on ",
                                                    info_.model(), ")", detail.empty() ? "" : "\n", detail));
  }
  return std::make_unique<CudaModule>(LoadedModule(*api_, module));
}

absl::StatusOr<std::unique_ptr<Runnable>> CudaDevice::Bind(Module& module, const v1::LaunchRecipe& recipe,
                                                           const Bindings& bindings) {
  return CudaRunnable::Bind(*api_, stream_.get(), info_, static_cast<CudaModule&>(module), recipe, bindings,
                            work_clock_.get());
}

absl::StatusOr<double> CudaDevice::TimeHot(absl::Span<Runnable* const> runnables, int runs) {
  if (runnables.empty() || runs < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(runnables.size(), " runnables and ", runs, " runs; both must be at least 1"));
  }
  std::vector<CudaRunnable*> own;
  own.reserve(runnables.size());
  for (Runnable* runnable : runnables) {
    own.push_back(static_cast<CudaRunnable*>(runnable));
    if (absl::Status status = own.back()->RunOnceBefore(); !status.ok()) return status;
  }
  return hot_graphs_->Time(own, runs);
}

absl::StatusOr<double> CudaDevice::TimeCold(Runnable& runnable) {
  auto& own = static_cast<CudaRunnable&>(runnable);
  if (absl::Status status = own.RunOnceBefore(); !status.ok()) return status;
  if (cold_timer_ == nullptr) {
    absl::StatusOr<std::unique_ptr<ColdTimer>> timer = ColdTimer::Create(*api_, stream_.get(), info_, *work_clock_);
    if (!timer.ok()) return timer.status();
    cold_timer_ = *std::move(timer);
  }
  return cold_timer_->Time(own);
}

absl::Duration CudaDevice::ColdResolution() const {
  return cold_timer_ == nullptr ? absl::ZeroDuration() : cold_timer_->resolution();
}

Telemetry CudaDevice::ReadTelemetry() {
  // The clock first: it falls when the device has nothing to do.
  const absl::StatusOr<int> clock_mhz = clock_probe_ != nullptr ? clock_probe_->Read() : absl::UnavailableError("");
  Telemetry telemetry = telemetry_.Read();
  if (clock_mhz.ok()) telemetry.sm_clock_mhz = *clock_mhz;
  return telemetry;
}

}  // namespace attune::device::cuda
