#include "server/device/cuda/device_info.h"

#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/device_profile.h"

namespace attune::device::cuda {
namespace {

constexpr int64_t kMaxRegistersPerThread = 255;  // of every architecture since 3.5; the driver has no attribute for it

// Reads attributes one after the other and keeps the first error.
class Attributes {
 public:
  Attributes(const DriverApi& api, DeviceHandle device) : api_(api), device_(device) {}

  int64_t operator()(DeviceAttribute attribute) {
    int value = 0;
    const Result result = api_.DeviceGetAttribute(&value, attribute, device_);
    if (result != kSuccess && status_.ok()) status_ = api_.Error("cuDeviceGetAttribute", result);
    return value;
  }
  const absl::Status& status() const { return status_; }

 private:
  const DriverApi& api_;
  const DeviceHandle device_;
  absl::Status status_;
};

std::string DriverText(const DriverApi& api, const NvmlApi* nvml) {
  std::string version = nvml == nullptr ? "" : nvml->DriverVersion();
  if (!version.empty()) return version;
  const absl::StatusOr<int> cuda = api.Version();
  return cuda.ok() ? absl::StrCat("CUDA ", *cuda / 1000, ".", *cuda % 1000 / 10) : "";
}

}  // namespace

std::string FormatUuid(const DeviceUuid& uuid) {
  const std::string hex = absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof uuid.bytes));
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-", hex.substr(16, 4),
                      "-", hex.substr(20));
}

v1::Device Emulate(v1::Device device, const v1::Device& profile, absl::string_view profile_name) {
  device.set_model(absl::StrCat(device.model(), " as ", profile_name));
  // PTX with the features of one architecture runs on no other.
  const bool same = device.compute_capability() == profile.compute_capability();
  const std::string architecture =
      same ? std::string(absl::StripPrefix(profile.target(), "sm_")) : absl::StrCat(profile.compute_capability());
  device.set_target("compute_" + architecture);
  device.set_compute_capability(profile.compute_capability());
  device.set_max_threads_per_block(profile.max_threads_per_block());
  device.set_max_warps_per_sm(profile.max_warps_per_sm());
  device.set_max_blocks_per_sm(profile.max_blocks_per_sm());
  device.set_registers_per_sm(profile.registers_per_sm());
  device.set_max_registers_per_thread(profile.max_registers_per_thread());
  device.set_shared_bytes_per_block(profile.shared_bytes_per_block());
  device.set_shared_bytes_per_sm(profile.shared_bytes_per_sm());
  device.set_reserved_shared_bytes_per_block(profile.reserved_shared_bytes_per_block());
  return device;
}

absl::StatusOr<v1::Device> DescribeDevice(const DriverApi& api, const NvmlApi* nvml, int ordinal,
                                          const v1::Device* profile) {
  DeviceHandle handle = 0;
  ATTUNE_CUDA_CALL(api, DeviceGet, &handle, ordinal);
  char name[256] = "";
  ATTUNE_CUDA_CALL(api, DeviceGetName, name, sizeof name, handle);
  DeviceUuid uuid;
  ATTUNE_CUDA_CALL(api, DeviceGetUuid, &uuid, handle);
  size_t memory_bytes = 0;
  ATTUNE_CUDA_CALL(api, DeviceTotalMem, &memory_bytes, handle);

  v1::Device device;
  device.set_id(absl::StrCat("cuda:", ordinal));
  device.set_backend(v1::BACKEND_CUDA);
  device.set_model(name);
  device.set_uuid(FormatUuid(uuid));
  device.set_driver(DriverText(api, nvml));
  device.set_memory_bytes(static_cast<int64_t>(memory_bytes));

  Attributes attribute(api, handle);
  device.set_compute_capability(10 * attribute(kComputeCapabilityMajor) + attribute(kComputeCapabilityMinor));
  device.set_target(CudaTarget(device.compute_capability()));
  device.set_compute_units(attribute(kMultiprocessorCount));
  device.set_warp_size(attribute(kWarpSize));
  device.set_max_threads_per_block(attribute(kMaxThreadsPerBlock));
  if (device.warp_size() > 0) {
    device.set_max_warps_per_sm(attribute(kMaxThreadsPerMultiprocessor) / device.warp_size());
  }
  device.set_max_blocks_per_sm(attribute(kMaxBlocksPerMultiprocessor));
  device.set_registers_per_sm(attribute(kMaxRegistersPerMultiprocessor));
  device.set_max_registers_per_thread(kMaxRegistersPerThread);
  device.set_shared_bytes_per_block(attribute(kMaxSharedMemoryPerBlockOptin));
  device.set_shared_bytes_per_sm(attribute(kMaxSharedMemoryPerMultiprocessor));
  device.set_reserved_shared_bytes_per_block(attribute(kReservedSharedMemoryPerBlock));
  device.set_l2_bytes(attribute(kL2CacheSize));
  device.set_sm_clock_mhz(attribute(kClockRateKhz) / 1000);
  // Both edges of the clock carry data: kHz * 2 * bits / 8 bytes a millisecond.
  device.set_memory_bandwidth_gbs(attribute(kMemoryClockRateKhz) * attribute(kGlobalMemoryBusWidthBits) / 4 /
                                  1'000'000);
  if (!attribute.status().ok()) return attribute.status();
  device.set_counts_energy(nvml != nullptr && nvml->JoulesOf(nvml->FindDevice(device.uuid())).has_value());

  if (profile != nullptr) device = Emulate(std::move(device), *profile, absl::StripPrefix(profile->id(), "profile:"));
  device.set_fingerprint(Fingerprint(device));
  return device;
}

}  // namespace attune::device::cuda
