// The part of NVRTC that attune calls; see driver_api.h for why it is declared here.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_NVRTC_API_H_
#define ATTUNE_SERVER_DEVICE_CUDA_NVRTC_API_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/device/cuda/dynamic_library.h"

namespace attune::device::cuda {

using NvrtcProgram = void*;  // nvrtcProgram

enum NvrtcResult : int {
  kNvrtcSuccess = 0,
  kNvrtcInvalidOption = 5,
  kNvrtcCompilation = 6,
};

#define ATTUNE_NVRTC_FUNCTIONS(X)                                                                                \
  X(Version, "nvrtcVersion", (int* major, int* minor))                                                           \
  X(GetNumSupportedArchs, "nvrtcGetNumSupportedArchs", (int* count))                                             \
  X(GetSupportedArchs, "nvrtcGetSupportedArchs", (int* architectures))                                           \
  X(CreateProgram, "nvrtcCreateProgram",                                                                         \
    (NvrtcProgram * program, const char* source, const char* name, int header_count, const char* const* headers, \
     const char* const* include_names))                                                                          \
  X(DestroyProgram, "nvrtcDestroyProgram", (NvrtcProgram * program))                                             \
  X(CompileProgram, "nvrtcCompileProgram", (NvrtcProgram program, int count, const char* const* options))        \
  X(GetPTXSize, "nvrtcGetPTXSize", (NvrtcProgram program, size_t * bytes))                                       \
  X(GetPTX, "nvrtcGetPTX", (NvrtcProgram program, char* ptx))                                                    \
  X(GetCUBINSize, "nvrtcGetCUBINSize", (NvrtcProgram program, size_t * bytes))                                   \
  X(GetCUBIN, "nvrtcGetCUBIN", (NvrtcProgram program, char* cubin))                                              \
  X(GetProgramLogSize, "nvrtcGetProgramLogSize", (NvrtcProgram program, size_t * bytes))                         \
  X(GetProgramLog, "nvrtcGetProgramLog", (NvrtcProgram program, char* log))

class NvrtcApi {
 public:
  // Opens the library of that name or path. NotFound when there is none; Unavailable when it is too old.
  static absl::StatusOr<std::shared_ptr<const NvrtcApi>> Load(const std::string& library);

  const std::string& path() const { return library_.path(); }
  int major() const { return major_; }
  int minor() const { return minor_; }
  std::string Error(const char* call, NvrtcResult result) const;

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a parameter list
#define ATTUNE_DECLARE(member, symbol, parameters) NvrtcResult(*member) parameters = nullptr;
  ATTUNE_NVRTC_FUNCTIONS(ATTUNE_DECLARE)
#undef ATTUNE_DECLARE
  const char* (*GetErrorString)(NvrtcResult result) = nullptr;

 private:
  explicit NvrtcApi(DynamicLibrary library) : library_(std::move(library)) {}
  DynamicLibrary library_;
  int major_ = 0;
  int minor_ = 0;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_NVRTC_API_H_
