// What the platforms say of themselves: the devices of this host as v1::Device.
#ifndef ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_INFO_H_
#define ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_INFO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "server/device/opencl/opencl_api.h"

namespace attune::device::opencl {

struct HostDevice {
  cl_device_id handle = nullptr;
  v1::Device info;
  std::string toolchain;  // "PoCL 3.1+debian LLVM 15.0.6 <device name>"
};

// Numbered "opencl:0" onwards over all platforms in the loader's order; devices that are not available or have no
// compiler are left out. Unavailable when none is left.
absl::StatusOr<std::vector<HostDevice>> FindDevices(const Api& api);

// The compiler's versions out of a platform's: PoCL's own and its LLVM's; with others the platform's and driver's
// whole.
std::string Toolchain(absl::string_view platform_version, absl::string_view driver, absl::string_view device_name);

}  // namespace attune::device::opencl

#endif  // ATTUNE_SERVER_DEVICE_OPENCL_OPENCL_INFO_H_
