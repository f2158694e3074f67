#include "server/device/cuda/runnable.h"

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/device/cuda/launch_check.h"

namespace attune::device::cuda {
namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

absl::StatusOr<DevicePointer> AddressOf(const v1::KernelArg::Buffer& buffer, const Bindings& bindings) {
  absl::StatusOr<BufferView> view = ViewOf(buffer, bindings);
  if (!view.ok()) return view.status();
  if (view->buffer == nullptr) return DevicePointer{0};
  const auto& memory = static_cast<const CudaBuffer&>(*view->buffer);
  if (view->offset > memory.size() || view->size > memory.size() - view->offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("view of ", view->size, " bytes at ", view->offset, "; the buffer has ", memory.size()));
  }
  return memory.address() + view->offset;
}

// The argument's bytes, in the low bytes of the result.
absl::StatusOr<uint64_t> ValueOf(const v1::KernelArg& arg, const Bindings& bindings) {
  uint64_t bits = 0;
  switch (arg.value_case()) {
    case v1::KernelArg::kBuffer:
      return AddressOf(arg.buffer(), bindings);
    case v1::KernelArg::kI32: {
      const int32_t value = arg.i32();
      std::memcpy(&bits, &value, sizeof value);
      return bits;
    }
    case v1::KernelArg::kI64:
      return static_cast<uint64_t>(arg.i64());
    case v1::KernelArg::kF32: {
      const float value = arg.f32();
      std::memcpy(&bits, &value, sizeof value);
      return bits;
    }
    default:
      return absl::InvalidArgumentError("it has no value; it must be buffer, i32, i64 or f32");
  }
}

void Copy(const v1::Dim3& from, unsigned (&to)[3]) {
  to[0] = static_cast<unsigned>(from.x());
  to[1] = static_cast<unsigned>(from.y());
  to[2] = static_cast<unsigned>(from.z());
}

}  // namespace

CudaRunnable::CudaRunnable(const DriverApi& api, StreamHandle stream) : api_(api), stream_(stream), id_(NextId()) {}

absl::StatusOr<CudaRunnable::Launch> CudaRunnable::BindLaunch(const DriverApi& api, const v1::Device& limits,
                                                              const CudaModule& module, const v1::KernelLaunch& launch,
                                                              const Bindings& bindings) {
  if (absl::Status status = CheckDimensions(limits, launch); !status.ok()) return status;
  Launch bound;
  const Result result = api.ModuleGetFunction(&bound.function, module.handle(), launch.entry().c_str());
  if (result == kNotFound) {
    return absl::InvalidArgumentError(
        absl::StrCat("entry is \"", launch.entry(), "\"; the artifact has no such kernel"));
  }
  if (result != kSuccess) return api.Error("cuModuleGetFunction", result);
  if (absl::Status status = MakeResident(api, limits, bound.function, launch); !status.ok()) return status;
  if (absl::Status status = CheckParameters(api, bound.function, launch); !status.ok()) return status;
  Copy(launch.grid(), bound.grid);
  Copy(launch.block(), bound.block);
  bound.dynamic_shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes());
  for (const v1::KernelArg& arg : launch.args()) {
    absl::StatusOr<uint64_t> value = ValueOf(arg, bindings);
    if (!value.ok()) {
      return absl::Status(value.status().code(), absl::StrCat("kernel ", launch.entry(), ": argument ",
                                                              bound.values.size(), ": ", value.status().message()));
    }
    bound.values.push_back(*value);
  }
  for (uint64_t& value : bound.values) bound.parameters.push_back(&value);
  return bound;
}

absl::StatusOr<std::unique_ptr<CudaRunnable>> CudaRunnable::Bind(const DriverApi& api, StreamHandle stream,
                                                                 const v1::Device& limits, const CudaModule& module,
                                                                 const v1::LaunchRecipe& recipe,
                                                                 const Bindings& bindings) {
  if (recipe.launches().empty()) return absl::InvalidArgumentError("launches is empty; at least one is needed");
  std::unique_ptr<CudaRunnable> runnable(new CudaRunnable(api, stream));
  for (const v1::KernelLaunch& launch : recipe.launches()) {
    absl::StatusOr<Launch> bound = BindLaunch(api, limits, module, launch, bindings);
    if (!bound.ok()) return bound.status();
    runnable->launches_.push_back(*std::move(bound));
  }
  return runnable;
}

absl::Status CudaRunnable::Enqueue() const {
  for (const Launch& launch : launches_) {
    // The driver takes the parameters as void**, and only reads them.
    ATTUNE_CUDA_CALL(api_, LaunchKernel, launch.function, launch.grid[0], launch.grid[1], launch.grid[2],
                     launch.block[0], launch.block[1], launch.block[2], launch.dynamic_shared_bytes, stream_,
                     const_cast<void**>(launch.parameters.data()), nullptr);
  }
  return absl::OkStatus();
}

absl::Status CudaRunnable::Run() {
  if (absl::Status status = Enqueue(); !status.ok()) return status;
  ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
  has_run_ = true;
  return absl::OkStatus();
}

absl::Status CudaRunnable::RunOnceBefore() { return has_run_ ? absl::OkStatus() : Run(); }

}  // namespace attune::device::cuda
