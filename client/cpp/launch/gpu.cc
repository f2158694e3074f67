#include "client/cpp/launch/gpu.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/cuda/device_info.h"
#include "server/device/cuda/tensor_map.h"

namespace attune::launch {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";
// Two addresses that differ in most of their bytes.
constexpr cuda::DevicePointer kLow = 1 << 20;
constexpr cuda::DevicePointer kHigh = (cuda::DevicePointer{1} << 47) - (1 << 12) + 16;

v1::TensorMap ProbeMap() {
  v1::TensorMap map;
  map.mutable_base()->set_role(v1::BUFFER_ROLE_K);
  map.set_element(v1::TensorMap::ELEMENT_F16);
  map.add_dims(64);
  map.add_dims(64);
  map.add_strides(128);
  map.add_box(64);
  map.add_box(64);
  map.set_swizzle_bytes(128);
  map.set_l2_promotion_bytes(256);
  return map;
}

uint64_t HeadOf(const cuda::EncodedTensorMap& map) { return map.opaque[0]; }

bool SameTail(const cuda::EncodedTensorMap& a, const cuda::EncodedTensorMap& b) {
  return std::memcmp(a.opaque + 1, b.opaque + 1, sizeof a.opaque - sizeof a.opaque[0]) == 0;
}

}  // namespace

Gpu::Gpu(std::shared_ptr<const cuda::DriverApi> driver, cuda::DynamicLibrary library)
    : driver_(std::move(driver)), library_(std::move(library)) {}

absl::Status Gpu::FindFunctions() {
  const auto find = [&](const char* symbol, auto** function) -> absl::Status {
    if (library_.Find(symbol, function)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the NVIDIA driver is too old: ", kLibrary, " has no ", symbol));
  };
  absl::Status status = find("cuCtxGetCurrent", &api_.CtxGetCurrent);
  status.Update(find("cuCtxPushCurrent_v2", &api_.CtxPushCurrent));
  status.Update(find("cuCtxPopCurrent_v2", &api_.CtxPopCurrent));
  status.Update(find("cuStreamIsCapturing", &api_.StreamIsCapturing));
  status.Update(find("cuStreamGetCaptureInfo_v2", &api_.StreamGetCaptureInfo));
  status.Update(find("cuThreadExchangeStreamCaptureMode", &api_.ThreadExchangeStreamCaptureMode));
  status.Update(find("cuUserObjectCreate", &api_.UserObjectCreate));
  status.Update(find("cuGraphRetainUserObject", &api_.GraphRetainUserObject));
  library_.Find("cuTensorMapReplaceAddress", &api_.TensorMapReplaceAddress);
  library_.Find("cuFuncLoad", &api_.FuncLoad);
  return status;
}

absl::StatusOr<std::shared_ptr<const Gpu>> Gpu::Open(int ordinal) {
  absl::StatusOr<std::shared_ptr<const cuda::DriverApi>> driver = cuda::DriverApi::Load();
  if (!driver.ok()) return driver.status();
  absl::StatusOr<cuda::DynamicLibrary> library = cuda::DynamicLibrary::Open(kLibrary);
  if (!library.ok()) return absl::UnavailableError(library.status().message());
  std::shared_ptr<Gpu> gpu(new Gpu(*std::move(driver), *std::move(library)));
  if (absl::Status status = gpu->FindFunctions(); !status.ok()) return status;
  const cuda::DriverApi& api = *gpu->driver_;
  using cuda::kSuccess;
  ATTUNE_CUDA_CALL(api, Init, 0);
  int count = 0;
  ATTUNE_CUDA_CALL(api, DeviceGetCount, &count);
  if (ordinal < 0 || ordinal >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("device is ", ordinal, "; this process sees ", count, count == 1 ? " device" : " devices"));
  }
  absl::StatusOr<v1::Device> info = cuda::DescribeDevice(api, nullptr, ordinal, nullptr);
  if (!info.ok()) return info.status();
  gpu->ordinal_ = ordinal;
  gpu->info_ = *std::move(info);
  cuda::DeviceHandle handle = 0;
  ATTUNE_CUDA_CALL(api, DeviceGet, &handle, ordinal);
  ATTUNE_CUDA_CALL(api, DevicePrimaryCtxRetain, &gpu->context_, handle);
  gpu->retained_ = cuda::PrimaryContext(api, handle);
  return gpu;
}

bool Gpu::MapsBeginWithAddress() const {
  std::call_once(maps_probed_, [this] { maps_begin_with_address_ = ProbeMaps(); });
  return maps_begin_with_address_;
}

bool Gpu::ProbeMaps() const {
  if (api_.TensorMapReplaceAddress == nullptr) return false;
  const v1::TensorMap map = ProbeMap();
  const absl::StatusOr<cuda::EncodedTensorMap> low = cuda::Encode(*driver_, map, kLow);
  const absl::StatusOr<cuda::EncodedTensorMap> high = cuda::Encode(*driver_, map, kHigh);
  if (!low.ok() || !high.ok()) return false;
  cuda::EncodedTensorMap moved = *low;
  if (api_.TensorMapReplaceAddress(&moved, kHigh) != cuda::kSuccess) return false;
  return HeadOf(*low) == kLow && HeadOf(*high) == kHigh && HeadOf(moved) == kHigh && SameTail(*low, *high) &&
         SameTail(moved, *high);
}

CurrentContext::CurrentContext(const Gpu& gpu) : gpu_(gpu) {
  cuda::ContextHandle current = nullptr;
  if (gpu.api().CtxGetCurrent(&current) == cuda::kSuccess && current == gpu.context()) return;
  const cuda::Result result = gpu.api().CtxPushCurrent(gpu.context());
  if (result == cuda::kSuccess) {
    pushed_ = true;
  } else {
    status_ = gpu.driver().Error("cuCtxPushCurrent", result);
  }
}

CurrentContext::~CurrentContext() {
  cuda::ContextHandle popped = nullptr;
  if (pushed_) gpu_.api().CtxPopCurrent(&popped);
}

}  // namespace attune::launch
