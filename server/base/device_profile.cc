#include "server/base/device_profile.h"

#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/quote.h"
#include "server/base/sha256.h"

namespace attune {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
constexpr int64_t kGiB = 1024 * kMiB;

// What differs between CUDA devices of compute capability 8.0 and later; the rest is the same for all of them.
// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the boards' data sheets.
struct Profile {
  absl::string_view name;
  absl::string_view model;
  int64_t compute_capability;
  int64_t sms;
  int64_t warps_per_sm;
  int64_t blocks_per_sm;
  int64_t shared_per_block;
  int64_t shared_per_sm;
  int64_t l2_bytes;
  int64_t memory_bytes;
  int64_t sm_clock_mhz;
  int64_t bandwidth_gbs;
};

constexpr Profile kProfiles[] = {
    {"a100", "NVIDIA A100-SXM4-80GB", 80, 108, 64, 32, 163 * kKiB, 164 * kKiB, 40 * kMiB, 80 * kGiB, 1410, 2039},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 64, 32, 227 * kKiB, 228 * kKiB, 50 * kMiB, 80 * kGiB, 1980, 3350},
    {"h200", "NVIDIA H200", 90, 132, 64, 32, 227 * kKiB, 228 * kKiB, 60 * kMiB, 141 * kGiB, 1980, 4800},
    {"l4", "NVIDIA L4", 89, 58, 48, 24, 99 * kKiB, 100 * kKiB, 48 * kMiB, 24 * kGiB, 2040, 300},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 48, 24, 99 * kKiB, 100 * kKiB, 72 * kMiB, 24 * kGiB, 2520, 1008},
};

v1::Device ToDevice(const Profile& profile) {
  v1::Device device;
  device.set_id(absl::StrCat("profile:", profile.name));
  device.set_backend(v1::BACKEND_CUDA);
  device.set_model(std::string(profile.model));
  device.set_target(CudaTarget(profile.compute_capability));
  device.set_compute_units(profile.sms);
  device.set_warp_size(32);
  device.set_max_threads_per_block(1024);
  device.set_max_warps_per_sm(profile.warps_per_sm);
  device.set_max_blocks_per_sm(profile.blocks_per_sm);
  device.set_registers_per_sm(64 * kKiB);
  device.set_max_registers_per_thread(255);
  device.set_shared_bytes_per_block(profile.shared_per_block);
  device.set_shared_bytes_per_sm(profile.shared_per_sm);
  device.set_reserved_shared_bytes_per_block(kKiB);
  device.set_l2_bytes(profile.l2_bytes);
  device.set_memory_bytes(profile.memory_bytes);
  device.set_compute_capability(profile.compute_capability);
  device.set_sm_clock_mhz(profile.sm_clock_mhz);
  device.set_memory_bandwidth_gbs(profile.bandwidth_gbs);
  device.set_fingerprint(Fingerprint(device));
  return device;
}

}  // namespace

absl::StatusOr<v1::Device> DeviceProfile(absl::string_view name) {
  for (const Profile& profile : kProfiles) {
    if (profile.name == name) return ToDevice(profile);
  }
  return absl::NotFoundError(
      absl::StrCat("device profile: name is ", Quoted(name), "; allowed: ", absl::StrJoin(DeviceProfileNames(), ", ")));
}

std::vector<absl::string_view> DeviceProfileNames() {
  std::vector<absl::string_view> names;
  for (const Profile& profile : kProfiles) names.push_back(profile.name);
  return names;
}

std::string CudaTarget(int64_t compute_capability) {
  return absl::StrCat("sm_", compute_capability, compute_capability >= 90 ? "a" : "");
}

std::optional<double> TensorFlopsPerClock(int64_t compute_capability) {
  switch (compute_capability) {
    case 80:
      return 2048;
    case 89:
      return 1024;
    case 90:
      return 4096;
    default:
      return std::nullopt;
  }
}

std::string Fingerprint(const v1::Device& device) {
  return Sha256(absl::StrJoin(
      std::make_tuple(v1::Backend_Name(device.backend()), device.model(), device.target(), device.compute_units(),
                      device.warp_size(), device.max_threads_per_block(), device.max_warps_per_sm(),
                      device.max_blocks_per_sm(), device.registers_per_sm(), device.max_registers_per_thread(),
                      device.shared_bytes_per_block(), device.shared_bytes_per_sm(),
                      device.reserved_shared_bytes_per_block(), device.l2_bytes(), device.compute_capability()),
      "\n"));
}

}  // namespace attune
