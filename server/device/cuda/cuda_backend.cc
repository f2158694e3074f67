#include "server/device/cuda/cuda_backend.h"

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/device_profile.h"
#include "server/device/cuda/check/cuda_inspector.h"
#include "server/device/cuda/cuda_device.h"
#include "server/device/cuda/device_info.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/nvml_api.h"
#include "server/device/cuda/nvrtc_compiler.h"
#include "server/device/cuda/toolkit.h"

namespace attune::device {
namespace cuda {
namespace {

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const std::string& emulate) : driver_(DriverApi::Load()) {
    if (!emulate.empty()) profile_ = DeviceProfile(emulate);
  }

  v1::BackendStatus Status() override {
    v1::BackendStatus status;
    status.set_backend(v1::BACKEND_CUDA);
    std::vector<std::string> reasons;
    const absl::StatusOr<std::vector<v1::Device>> devices = Describe();
    status.set_available(devices.ok());
    if (!devices.ok()) reasons.emplace_back(devices.status().message());
    absl::StatusOr<std::unique_ptr<Compiler>> compiler = OpenCompiler();
    if (compiler.ok()) {
      status.set_compiler((*compiler)->toolchain());
    } else {
      reasons.emplace_back(compiler.status().message());
    }
    status.set_reason(absl::StrJoin(reasons, "; "));
    return status;
  }

  std::vector<v1::Device> Devices() override { return Describe().value_or(std::vector<v1::Device>()); }

  absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& device_id) override {
    absl::StatusOr<std::vector<v1::Device>> devices = Describe();
    if (!devices.ok()) return devices.status();
    std::vector<std::string> ids;
    for (size_t ordinal = 0; ordinal < devices->size(); ++ordinal) {
      v1::Device& device = (*devices)[ordinal];
      if (device.id() == device_id) {
        return CudaDevice::Open(*driver_, Nvml(), static_cast<int>(ordinal), device, CheckKernels(device.target()));
      }
      ids.push_back(device.id());
    }
    return absl::NotFoundError(absl::StrCat("device is \"", device_id, "\"; this host has ", absl::StrJoin(ids, ", ")));
  }

  absl::StatusOr<std::unique_ptr<Compiler>> OpenCompiler() override {
    const int driver_version = driver_.ok() ? (*driver_)->Version().value_or(0) : 0;
    const ToolkitSearch search = ToolkitSearch::FromEnvironment(driver_version);
    absl::StatusOr<std::shared_ptr<const NvrtcApi>> nvrtc = FindNvrtc(search);
    if (!nvrtc.ok()) return nvrtc.status();
    absl::StatusOr<std::vector<std::string>> includes = FindToolkitHeaders(search, (*nvrtc)->path());
    if (!includes.ok()) return includes.status();
    return std::make_unique<NvrtcCompiler>(*std::move(nvrtc), *std::move(includes));
  }

 private:
  // Every device, or the reason why there is none.
  absl::StatusOr<std::vector<v1::Device>> Describe() {
    if (profile_.has_value() && !profile_->ok()) return profile_->status();
    if (!driver_.ok()) return driver_.status();
    const DriverApi& api = **driver_;
    ATTUNE_CUDA_CALL(api, Init, 0);
    int count = 0;
    ATTUNE_CUDA_CALL(api, DeviceGetCount, &count);
    if (count == 0) return absl::UnavailableError("the NVIDIA driver shows no device");
    std::vector<v1::Device> devices;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      absl::StatusOr<v1::Device> device =
          DescribeDevice(api, Nvml().get(), ordinal, profile_.has_value() ? &**profile_ : nullptr);
      if (!device.ok()) return device.status();
      devices.push_back(*std::move(device));
    }
    return devices;
  }

  // Compiled once; empty, and said so once, where they cannot be.
  const std::string& CheckKernels(const std::string& target) {
    if (check_kernels_.has_value()) return *check_kernels_;
    absl::StatusOr<std::unique_ptr<Compiler>> compiler = OpenCompiler();
    absl::StatusOr<std::string> artifact =
        compiler.ok() ? CompileCheckKernels(**compiler, target) : absl::StatusOr<std::string>(compiler.status());
    if (!artifact.ok()) {
      std::cerr << "attune-worker: outputs are compared on the host: " << artifact.status().message() << std::endl;
    }
    check_kernels_ = artifact.value_or("");
    return *check_kernels_;
  }

  std::shared_ptr<const NvmlApi> Nvml() {
    if (!nvml_.has_value()) nvml_ = NvmlApi::Load();
    return *nvml_;
  }

  const absl::StatusOr<std::shared_ptr<const DriverApi>> driver_;
  std::optional<absl::StatusOr<v1::Device>> profile_;   // to emulate
  std::optional<std::shared_ptr<const NvmlApi>> nvml_;  // once asked for; null when there is none
  std::optional<std::string> check_kernels_;            // once asked for
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> MakeCudaBackend(const std::string& emulate) {
  return std::make_unique<cuda::CudaBackend>(emulate);
}

}  // namespace attune::device
