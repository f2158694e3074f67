#include "server/device/cuda/runnable.h"

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/device/cuda/launch_check.h"
#include "server/device/cuda/tensor_map.h"

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
      return absl::InvalidArgumentError("it has no value; it must be buffer, i32, i64, f32 or tensor_map");
  }
}

absl::StatusOr<EncodedTensorMap> TensorMapOf(const DriverApi& api, const v1::TensorMap& map, const Bindings& bindings) {
  if (!map.has_base()) return EncodedTensorMap();
  const absl::StatusOr<DevicePointer> base = AddressOf(map.base(), bindings);
  if (!base.ok()) return base.status();
  return Encode(api, map, *base);
}

void Copy(const v1::Dim3& from, unsigned (&to)[3]) {
  to[0] = static_cast<unsigned>(from.x());
  to[1] = static_cast<unsigned>(from.y());
  to[2] = static_cast<unsigned>(from.z());
}

std::vector<LaunchAttribute> AttributesOf(const v1::KernelLaunch& launch) {
  std::vector<LaunchAttribute> attributes;
  if (launch.has_cluster()) {
    LaunchAttribute& attribute = attributes.emplace_back();
    attribute.id = kLaunchClusterDimension;
    Copy(launch.cluster(), attribute.value.cluster);
  }
  if (launch.overlaps_previous()) {
    LaunchAttribute& attribute = attributes.emplace_back();
    attribute.id = kLaunchProgrammaticStreamSerialization;
    attribute.value.programmatic_stream_serialization = 1;
  }
  return attributes;
}

}  // namespace

CudaRunnable::CudaRunnable(const DriverApi& api, StreamHandle stream, WorkClock* clock)
    : api_(api), stream_(stream), clock_(clock), id_(NextId()) {}

absl::StatusOr<CudaRunnable::Launch> CudaRunnable::BindLaunch(const DriverApi& api, StreamHandle stream,
                                                              const v1::Device& limits, const CudaModule& module,
                                                              const v1::KernelLaunch& launch,
                                                              const Bindings& bindings) {
  if (absl::Status status = CheckDimensions(limits, launch); !status.ok()) return status;
  Launch bound;
  const Result result = api.ModuleGetFunction(&bound.function, module.handle(), launch.entry().c_str());
  if (result == kNotFound) {
    return absl::InvalidArgumentError(
        absl::StrCat("entry is \"", launch.entry(), "\"; the artifact has no such kernel"));
  }
  if (result != kSuccess) return api.Error("cuModuleGetFunction", result);
  Copy(launch.grid(), bound.config.grid);
  Copy(launch.block(), bound.config.block);
  bound.config.dynamic_shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes());
  bound.config.stream = stream;
  bound.attributes = AttributesOf(launch);
  bound.config.attributes = bound.attributes.data();
  bound.config.attribute_count = static_cast<unsigned>(bound.attributes.size());
  if (absl::Status status = MakeResident(api, limits, bound.function, launch, bound.config); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckParameters(api, bound.function, launch); !status.ok()) return status;
  // Parameters point into them.
  bound.values.reserve(static_cast<size_t>(launch.args_size()));
  bound.maps.reserve(static_cast<size_t>(launch.args_size()));
  for (const v1::KernelArg& arg : launch.args()) {
    if (absl::Status status = BindArgument(api, arg, bindings, &bound); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("kernel ", launch.entry(), ": argument ", bound.parameters.size(),
                                                      ": ", status.message()));
    }
  }
  return bound;
}

absl::Status CudaRunnable::BindArgument(const DriverApi& api, const v1::KernelArg& arg, const Bindings& bindings,
                                        Launch* bound) {
  if (arg.has_tensor_map()) {
    absl::StatusOr<EncodedTensorMap> map = TensorMapOf(api, arg.tensor_map(), bindings);
    if (!map.ok()) return map.status();
    bound->parameters.push_back(&bound->maps.emplace_back(*map));
  } else {
    const absl::StatusOr<uint64_t> value = ValueOf(arg, bindings);
    if (!value.ok()) return value.status();
    bound->parameters.push_back(&bound->values.emplace_back(*value));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CudaRunnable>> CudaRunnable::Bind(const DriverApi& api, StreamHandle stream,
                                                                 const v1::Device& limits, const CudaModule& module,
                                                                 const v1::LaunchRecipe& recipe,
                                                                 const Bindings& bindings, WorkClock* clock) {
  if (recipe.launches().empty()) return absl::InvalidArgumentError("launches is empty; at least one is needed");
  if (recipe.launches(0).overlaps_previous()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", recipe.launches(0).entry(),
                     ": overlaps_previous is true; a recipe's first launch must not overlap"));
  }
  std::unique_ptr<CudaRunnable> runnable(new CudaRunnable(api, stream, clock));
  for (const v1::KernelLaunch& launch : recipe.launches()) {
    absl::StatusOr<Launch> bound = BindLaunch(api, stream, limits, module, launch, bindings);
    if (!bound.ok()) return bound.status();
    runnable->launches_.push_back(*std::move(bound));
  }
  return runnable;
}

absl::Status CudaRunnable::Enqueue() const {
  for (const Launch& launch : launches_) {
    // The driver takes the parameters as void**, and only reads them.
    ATTUNE_CUDA_CALL(api_, LaunchKernelEx, &launch.config, launch.function,
                     const_cast<void**>(launch.parameters.data()), nullptr);
  }
  return absl::OkStatus();
}

absl::Status CudaRunnable::Run() {
  absl::Status status = clock_ != nullptr ? clock_->Begin() : absl::OkStatus();
  if (status.ok()) status = Enqueue();
  if (status.ok() && clock_ != nullptr) status = clock_->EndAndWait();
  if (!status.ok()) return status;
  if (clock_ == nullptr) ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
  has_run_ = true;
  return absl::OkStatus();
}

absl::Status CudaRunnable::RunOnceBefore() { return has_run_ ? absl::OkStatus() : Run(); }

}  // namespace attune::device::cuda
