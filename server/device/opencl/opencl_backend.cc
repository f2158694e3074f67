#include "server/device/opencl/opencl_backend.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/device/opencl/opencl_api.h"
#include "server/device/opencl/opencl_compiler.h"
#include "server/device/opencl/opencl_device.h"
#include "server/device/opencl/opencl_info.h"
#include "server/device/opencl/pocl_environment.h"

namespace attune::device {
namespace {

using opencl::Api;
using opencl::HostDevice;

class OpenClBackend : public Backend {
 public:
  v1::BackendStatus Status() override {
    v1::BackendStatus status;
    status.set_backend(v1::BACKEND_OPENCL);
    const absl::Status found = Find();
    status.set_available(found.ok());
    if (found.ok()) {
      status.set_compiler(devices_.front().toolchain);
    } else {
      status.set_reason(std::string(found.message()));
    }
    return status;
  }

  std::vector<v1::Device> Devices() override {
    std::vector<v1::Device> devices;
    if (!Find().ok()) return devices;
    for (const HostDevice& device : devices_) devices.push_back(device.info);
    return devices;
  }

  absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& device_id) override {
    if (absl::Status found = Find(); !found.ok()) return found;
    std::vector<std::string> ids;
    for (const HostDevice& device : devices_) {
      if (device.info.id() == device_id) return opencl::OpenDevice(api_, device);
      ids.push_back(device.info.id());
    }
    return absl::NotFoundError(absl::StrCat("device is '", device_id, "'; available: ", absl::StrJoin(ids, ", ")));
  }

  absl::StatusOr<std::unique_ptr<Compiler>> OpenCompiler() override {
    if (absl::Status found = Find(); !found.ok()) return found;
    return opencl::MakeCompiler(api_, devices_);
  }

 private:
  // Opens the loader and asks for its devices, once; a failure is asked again, for it may be cured meanwhile.
  absl::Status Find() {
    if (!devices_.empty()) return absl::OkStatus();
    if (absl::Status status = opencl::PreparePoclEnvironment(); !status.ok()) return status;
    absl::StatusOr<std::shared_ptr<const Api>> api = opencl::LoadApi();
    if (!api.ok()) return api.status();
    absl::StatusOr<std::vector<HostDevice>> devices = opencl::FindDevices(**api);
    if (!devices.ok()) return devices.status();
    api_ = *std::move(api);
    devices_ = *std::move(devices);
    return absl::OkStatus();
  }

  std::shared_ptr<const Api> api_;
  std::vector<HostDevice> devices_;
};

}  // namespace

std::unique_ptr<Backend> MakeOpenClBackend() { return std::make_unique<OpenClBackend>(); }

}  // namespace attune::device
