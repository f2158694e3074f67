// A device as its limits: those of devices that are not here, so that a space can be enumerated and compiled for them,
// and the fingerprint of any.
#ifndef ATTUNE_SERVER_BASE_DEVICE_PROFILE_H_
#define ATTUNE_SERVER_BASE_DEVICE_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"

namespace attune {

// "l4", "h200", ... NotFound lists what there is. Device.id is "profile:<name>".
absl::StatusOr<v1::Device> DeviceProfile(absl::string_view name);
std::vector<absl::string_view> DeviceProfileNames();

// What CUDA code is compiled for: "sm_89"; from 9.0 on with the features that only that architecture has: "sm_90a".
std::string CudaTarget(int64_t compute_capability);

// Dense fp16 tensor-core operations an SM does in a clock with fp32 accumulation; nullopt where chips of one compute
// capability differ or it is not known. A100 whitepaper (312 TFLOP/s at 108 SMs, 1.41 GHz), L4 data sheet (121 at 58,
// 2.04), H100 whitepaper (989 at 132, 1.83).
std::optional<double> TensorFlopsPerClock(int64_t compute_capability);

// Device.fingerprint: SHA-256, hexadecimal, over backend, model, target and the limits a variant must fit. Left out
// are id, uuid and driver, and memory size and clock, which one device reports differently from driver to driver.
std::string Fingerprint(const v1::Device& device);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_DEVICE_PROFILE_H_
