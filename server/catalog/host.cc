#include "server/catalog/host.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::catalog {

const v1::Device* FindDevice(const Host& host, absl::string_view id) {
  for (const v1::Device& device : host.devices) {
    if (device.id() == id) return &device;
  }
  return nullptr;
}

const v1::Device* DefaultDevice(const Host& host) { return host.devices.empty() ? nullptr : &host.devices.front(); }

std::string DeviceIds(const Host& host) {
  return absl::StrJoin(host.devices, ", ",
                       [](std::string* out, const v1::Device& device) { absl::StrAppend(out, device.id()); });
}

absl::StatusOr<std::string> Toolchain(const Host& host, v1::Backend backend) {
  std::string reason = "this build has no such back end";
  for (const v1::BackendStatus& status : host.backends) {
    if (status.backend() != backend) continue;
    if (!status.compiler().empty()) return status.compiler();
    reason = status.reason();
  }
  return absl::UnavailableError(absl::StrCat(v1::Backend_Name(backend), " has no compiler here: ", reason));
}

}  // namespace attune::catalog
