// Finds NVRTC and the toolkit's headers on this host.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TOOLKIT_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TOOLKIT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/cuda/nvrtc_api.h"

namespace attune::device::cuda {

// Where to look.
struct ToolkitSearch {
  std::string nvrtc;               // this library and no other; empty: look for the newest
  std::string include;             // this directory and no other; empty: look for one
  std::vector<std::string> roots;  // of toolkits, beside the loader's own path
  // The newest CUDA version that the installed driver supports, 13000 for 13.0; 0 without a driver.
  int driver_version = 0;

  // ATTUNE_NVRTC, ATTUNE_CUDA_INCLUDE, CUDA_HOME, CUDA_PATH and /usr/local/cuda.
  static ToolkitSearch FromEnvironment(int driver_version);
};

// The index of the newest of `versions` (major, minor) whose code the driver loads, or -1. Code of a newer minor
// version runs too: CUDA's minor-version compatibility; one of a newer major version does not.
int ChooseVersion(const std::vector<std::pair<int, int>>& versions, int driver_version);

// Unavailable says what was looked for, or what was found and is too new for the driver.
absl::StatusOr<std::shared_ptr<const NvrtcApi>> FindNvrtc(const ToolkitSearch& search);

// The directory that has cuda_fp16.h for the NVRTC library at `nvrtc_path`: the one that came with it, before others;
// and where the toolkit came as wheels, the compiler's own beside it. Unavailable lists where it was looked for.
absl::StatusOr<std::vector<std::string>> FindToolkitHeaders(const ToolkitSearch& search, const std::string& nvrtc_path);

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TOOLKIT_H_
