#include "server/device/cuda/device_info.h"

#include <cstring>

#include "gtest/gtest.h"
#include "server/base/device_profile.h"

namespace attune::device::cuda {
namespace {

TEST(FormatUuid, WritesItAsNvidiaSmiDoes) {
  DeviceUuid uuid;
  const unsigned char bytes[16] = {0x71, 0x67, 0xeb, 0xde, 0x4b, 0xd0, 0xd4, 0x2d,
                                   0xb4, 0x9f, 0x54, 0xbb, 0x3a, 0x5f, 0x32, 0x24};
  std::memcpy(uuid.bytes, bytes, sizeof bytes);
  EXPECT_EQ(FormatUuid(uuid), "GPU-7167ebde-4bd0-d42d-b49f-54bb3a5f3224");
}

TEST(Emulate, TakesTheLimitsAndKeepsTheChip) {
  v1::Device real, profile;
  real.set_id("cuda:0");
  real.set_uuid("GPU-1");
  real.set_model("NVIDIA H200");
  real.set_target("sm_90a");
  real.set_compute_capability(90);
  real.set_compute_units(132);
  real.set_l2_bytes(62'914'560);
  real.set_shared_bytes_per_block(232'448);
  real.set_max_warps_per_sm(64);
  profile.set_id("profile:l4");
  profile.set_target("sm_89");
  profile.set_compute_capability(89);
  profile.set_compute_units(58);
  profile.set_shared_bytes_per_block(101'376);
  profile.set_max_warps_per_sm(48);
  const v1::Device emulated = Emulate(real, profile, "l4");
  EXPECT_EQ(emulated.id(), "cuda:0");
  EXPECT_EQ(emulated.uuid(), "GPU-1");
  EXPECT_EQ(emulated.model(), "NVIDIA H200 as l4");
  EXPECT_EQ(emulated.target(), "compute_89");
  EXPECT_EQ(emulated.compute_capability(), 89);
  EXPECT_EQ(emulated.shared_bytes_per_block(), 101'376);
  EXPECT_EQ(emulated.max_warps_per_sm(), 48);
  EXPECT_EQ(emulated.compute_units(), 132);
  EXPECT_EQ(emulated.l2_bytes(), 62'914'560);
}

TEST(Emulate, KeepsWhatOnlyItsOwnArchitectureHas) {
  const v1::Device h100 = *DeviceProfile("h100");
  v1::Device real;
  real.set_compute_capability(90);
  EXPECT_EQ(Emulate(real, h100, "h100").target(), "compute_90a");
  real.set_compute_capability(100);
  EXPECT_EQ(Emulate(real, h100, "h100").target(), "compute_90");
}

}  // namespace
}  // namespace attune::device::cuda
