// CUDA C++ to cubin or PTX, in this process.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_NVRTC_COMPILER_H_
#define ATTUNE_SERVER_DEVICE_CUDA_NVRTC_COMPILER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/cuda/nvrtc_api.h"
#include "server/device/device.h"

namespace attune::device::cuda {

// Targets "sm_89" (the artifact is a cubin) and "compute_89" (PTX, which the driver compiles for the device that runs
// it). Either is compiled once, for sm_89, so that registers and spills are known: NVRTC keeps the PTX it made on the
// way.
class NvrtcCompiler : public Compiler {
 public:
  // `includes`: where the toolkit's headers are.
  NvrtcCompiler(std::shared_ptr<const NvrtcApi> nvrtc, std::vector<std::string> includes);

  std::string toolchain() const override;
  // FailedPrecondition when this NVRTC does not know the target; InvalidArgument when the request names none, or no
  // source.
  absl::StatusOr<worker::v1::CompileResponse> Compile(const worker::v1::CompileRequest& request) override;

 private:
  absl::Status CheckTarget(const std::string& target) const;

  const std::shared_ptr<const NvrtcApi> nvrtc_;
  const std::vector<std::string> includes_;
};

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_NVRTC_COMPILER_H_
