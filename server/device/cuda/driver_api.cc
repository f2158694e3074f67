#include "server/device/cuda/driver_api.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::device::cuda {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

absl::StatusCode CodeOf(Result result) {
  switch (result) {
    case kIllegalAddress:
    case kLaunchTimeout:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
      return absl::StatusCode::kAborted;
    case kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case kInvalidImage:
    case kNoBinaryForGpu:
    case kInvalidPtx:
    case kUnsupportedPtxVersion:
    case kInvalidSource:
      return absl::StatusCode::kInvalidArgument;
    case kLaunchOutOfResources:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DriverApi>> DriverApi::Load() {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open(kLibrary);
  if (!library.ok()) {
    return absl::UnavailableError(absl::StrCat("no NVIDIA driver on this host: ", library.status().message()));
  }
  std::shared_ptr<DriverApi> api(new DriverApi(*std::move(library)));
#define ATTUNE_FIND(member, symbol, parameters)                                                                  \
  if (!api->library_.Find(symbol, &api->member)) {                                                               \
    return absl::UnavailableError(absl::StrCat("the NVIDIA driver is too old: ", kLibrary, " has no ", symbol)); \
  }
  ATTUNE_CUDA_FUNCTIONS(ATTUNE_FIND)
#undef ATTUNE_FIND
  api->library_.Find("cuFuncGetParamInfo", &api->FuncGetParamInfo);
  api->library_.Find("cuTensorMapEncodeTiled", &api->TensorMapEncodeTiled);
  return api;
}

absl::StatusOr<int> DriverApi::Version() const {
  int version = 0;
  ATTUNE_CUDA_CALL(*this, DriverGetVersion, &version);
  return version;
}

absl::Status DriverApi::Error(const char* call, Result result) const {
  const char* name = nullptr;
  if (GetErrorName == nullptr || GetErrorName(result, &name) != kSuccess || name == nullptr) {
    return absl::Status(CodeOf(result), absl::StrCat(call, ": CUDA error ", static_cast<int>(result)));
  }
  return absl::Status(CodeOf(result), absl::StrCat(call, ": ", name));
}

}  // namespace attune::device::cuda
