#include "server/device/cuda/nvrtc_api.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune::device::cuda {

absl::StatusOr<std::shared_ptr<const NvrtcApi>> NvrtcApi::Load(const std::string& library) {
  absl::StatusOr<DynamicLibrary> opened = DynamicLibrary::Open(library);
  if (!opened.ok()) return opened.status();
  std::shared_ptr<NvrtcApi> api(new NvrtcApi(*std::move(opened)));
  const auto too_old = [&](const char* symbol) {
    return absl::UnavailableError(absl::StrCat(api->path(), " is too old: it has no ", symbol));
  };
#define ATTUNE_FIND(member, symbol, parameters) \
  if (!api->library_.Find(symbol, &api->member)) return too_old(symbol);
  ATTUNE_NVRTC_FUNCTIONS(ATTUNE_FIND)
#undef ATTUNE_FIND
  if (!api->library_.Find("nvrtcGetErrorString", &api->GetErrorString)) return too_old("nvrtcGetErrorString");
  if (NvrtcResult result = api->Version(&api->major_, &api->minor_); result != kNvrtcSuccess) {
    return absl::UnavailableError(api->Error("nvrtcVersion", result));
  }
  return api;
}

std::string NvrtcApi::Error(const char* call, NvrtcResult result) const {
  return absl::StrCat(call, ": ", GetErrorString(result));
}

}  // namespace attune::device::cuda
