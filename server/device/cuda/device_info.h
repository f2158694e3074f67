// What a CUDA device is, in attune's words.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_DEVICE_INFO_H_
#define ATTUNE_SERVER_DEVICE_CUDA_DEVICE_INFO_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/nvml_api.h"

namespace attune::device::cuda {

// Needs cuInit, no context. `nvml` may be null. A `profile` (base/device_profile.h) lends its limits and its compute
// capability; without one it is null.
absl::StatusOr<v1::Device> DescribeDevice(const DriverApi& api, const NvmlApi* nvml, int ordinal,
                                          const v1::Device* profile);

// `device` with the limits of `profile` and code as PTX for it; id, uuid and what belongs to the chip as a whole (SMs,
// L2, memory, clock) stay.
v1::Device Emulate(v1::Device device, const v1::Device& profile, absl::string_view profile_name);

// As NVML and nvidia-smi write it: "GPU-00112233-4455-6677-8899-aabbccddeeff".
std::string FormatUuid(const DeviceUuid& uuid);

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_DEVICE_INFO_H_
