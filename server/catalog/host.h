// What this host has: devices, compilers, kernel families.
#ifndef ATTUNE_SERVER_CATALOG_HOST_H_
#define ATTUNE_SERVER_CATALOG_HOST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "server/space/family.h"

namespace attune::catalog {

struct Host {
  std::vector<v1::Device> devices;  // as the probe found them
  std::vector<v1::BackendStatus> backends;
  std::vector<std::shared_ptr<const space::Family>> families;  // of every role
};

// Null when the host has no such device.
const v1::Device* FindDevice(const Host& host, absl::string_view id);

// The device of a request that names none. Null on a host without one.
const v1::Device* DefaultDevice(const Host& host);

// "cuda:0, opencl:0"; empty without a device.
std::string DeviceIds(const Host& host);

// "nvrtc 13.0"; Unavailable with the reason when the back end has no compiler here.
absl::StatusOr<std::string> Toolchain(const Host& host, v1::Backend backend);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_HOST_H_
