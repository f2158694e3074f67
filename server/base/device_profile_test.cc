#include "server/base/device_profile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(DeviceProfile, KnowsTheLimitsOfAnL4) {
  const v1::Device l4 = *DeviceProfile("l4");
  EXPECT_EQ(l4.id(), "profile:l4");
  EXPECT_EQ(l4.target(), "sm_89");
  EXPECT_EQ(l4.compute_units(), 58);
  EXPECT_EQ(l4.max_warps_per_sm(), 48);
  EXPECT_EQ(l4.max_blocks_per_sm(), 24);
  EXPECT_EQ(l4.registers_per_sm(), 65536);
  EXPECT_EQ(l4.shared_bytes_per_block(), 101376);
  EXPECT_EQ(l4.shared_bytes_per_sm(), 102400);
  EXPECT_EQ(l4.l2_bytes(), 50331648);
  EXPECT_EQ(l4.memory_bandwidth_gbs(), 300);
}

TEST(DeviceProfile, KnowsTheLimitsOfAnH200) {
  const v1::Device h200 = *DeviceProfile("h200");
  EXPECT_EQ(h200.target(), "sm_90a");
  EXPECT_EQ(h200.compute_units(), 132);
  EXPECT_EQ(h200.max_warps_per_sm(), 64);
  EXPECT_EQ(h200.max_blocks_per_sm(), 32);
  EXPECT_EQ(h200.shared_bytes_per_block(), 232448);
  EXPECT_EQ(h200.shared_bytes_per_sm(), 233472);
  EXPECT_EQ(h200.l2_bytes(), 62914560);
}

TEST(CudaTarget, HasArchitectureFeaturesFromHopperOn) {
  EXPECT_EQ(CudaTarget(75), "sm_75");
  EXPECT_EQ(CudaTarget(89), "sm_89");
  EXPECT_EQ(CudaTarget(90), "sm_90a");
  EXPECT_EQ(CudaTarget(120), "sm_120a");
}

TEST(DeviceProfile, AnUnknownNameListsWhatThereIs) {
  const absl::Status status = DeviceProfile("l5").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'l5'; allowed: a100, h100, h200, l4, rtx4090"));
}

TEST(DeviceProfile, EveryNameHasAProfile) {
  EXPECT_THAT(DeviceProfileNames(), IsSupersetOf({"l4", "h200"}));
  for (absl::string_view name : DeviceProfileNames()) EXPECT_TRUE(DeviceProfile(name).ok()) << name;
}

TEST(Fingerprint, IsTheProfilesOwn) {
  const v1::Device l4 = *DeviceProfile("l4");
  EXPECT_EQ(l4.fingerprint(), Fingerprint(l4));
  EXPECT_EQ(l4.fingerprint().size(), 64);
}

TEST(Fingerprint, LeavesOutWhereTheDeviceIsAndWhatDrivesIt) {
  v1::Device device = *DeviceProfile("l4");
  const std::string before = Fingerprint(device);
  device.set_id("cuda:3");
  device.set_uuid("GPU-1234");
  device.set_driver("999.1");
  device.set_memory_bytes(device.memory_bytes() - 4096);
  EXPECT_EQ(Fingerprint(device), before);
}

TEST(Fingerprint, ChangesWithModelTargetAndLimits) {
  const v1::Device l4 = *DeviceProfile("l4");
  v1::Device other = l4;
  other.set_model("NVIDIA L4 rev 2");
  EXPECT_NE(Fingerprint(other), Fingerprint(l4));
  other = l4;
  other.set_target("compute_89");
  EXPECT_NE(Fingerprint(other), Fingerprint(l4));
  other = l4;
  other.set_compute_units(57);
  EXPECT_NE(Fingerprint(other), Fingerprint(l4));
}

}  // namespace
}  // namespace attune
