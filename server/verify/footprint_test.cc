#include "server/verify/footprint.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::verify {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1 << 30;

v1::Device DeviceWith(double bytes, int warp_size) {
  v1::Device device;
  device.set_id("cuda:0");
  device.set_memory_bytes(static_cast<int64_t>(bytes));
  device.set_warp_size(warp_size);
  return device;
}

TEST(Footprint, CountsInputsAndResultsOfEveryDistribution) {
  // Q, K and V of 2^20 elements are 6 MiB.
  const Footprint footprint = FootprintOf(*ParseProblem("b1.h1.q16384.d64.f16"));
  EXPECT_EQ(footprint.device, (5 * 6 + 2 + 4) * double{1 << 20});
  EXPECT_EQ(footprint.host, (6 * (6 + 4) + 2 * 2) * double{1 << 20});
}

TEST(Footprint, CountsKeysAndValuesOf8Bits) {
  // Of 2^20 elements each Q takes 2 MiB, K and V one.
  const Footprint footprint = FootprintOf(*ParseProblem("b1.h1.q16384.d64.f16.kve4m3"));
  EXPECT_EQ(footprint.device, (5 * 4 + 2 + 4) * double{1 << 20});
  EXPECT_EQ(footprint.host, (6 * (4 + 4) + 2 * 2) * double{1 << 20});
}

TEST(Footprint, FollowsTheLengthsAProblemIsTunedOn) {
  EXPECT_LT(FootprintOf(*ParseProblem("b64.h1.q16384.d64.f16.varlen")).device,
            0.6 * FootprintOf(*ParseProblem("b64.h1.q16384.d64.f16")).device);
  EXPECT_LT(FootprintOf(*ParseProblem("b1.h8.kvh1.q16384.d64.f16")).device,
            FootprintOf(*ParseProblem("b1.h8.q16384.d64.f16")).device);
}

TEST(CheckFits, RefusesWhatTheDeviceCannotHold) {
  const Problem huge = *ParseProblem("b1.h1.q16777216.d64.f16");  // 36 GiB on the device, 64 on the host
  EXPECT_TRUE(CheckFits(huge, DeviceWith(80 * kGiB, 32), 128 * kGiB).ok());
  const absl::Status small = CheckFits(huge, DeviceWith(24 * kGiB, 32), 128 * kGiB);
  EXPECT_EQ(small.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(small.message()),
              HasSubstr("b1.h1.q16777216.d64.f16 needs at least 36.0 GiB of cuda:0's memory to be checked, inputs and "
                        "results of 5 distributions; there are 24.0 GiB"));
}

TEST(CheckFits, RefusesWhatTheHostCannotHold) {
  const Problem huge = *ParseProblem("b1.h1.q16777216.d64.f16");
  EXPECT_THAT(std::string(CheckFits(huge, DeviceWith(80 * kGiB, 32), 32 * kGiB).message()),
              HasSubstr("at least 64.0 GiB of the host's memory"));
}

TEST(CheckFits, OnACpuBothAreTheHosts) {
  const Problem huge = *ParseProblem("b1.h1.q16777216.d64.f16");
  EXPECT_THAT(std::string(CheckFits(huge, DeviceWith(80 * kGiB, 1), 80 * kGiB).message()),
              HasSubstr("at least 100.0 GiB of cuda:0's memory"));
  EXPECT_TRUE(CheckFits(huge, DeviceWith(104 * kGiB, 1), 104 * kGiB).ok());
}

TEST(CheckFits, WhatIsNotKnownIsNotChecked) {
  EXPECT_TRUE(CheckFits(*ParseProblem("b1.h1.q16777216.d64.f16"), DeviceWith(0, 32), 0).ok());
  EXPECT_GT(HostBytes(), 0);
}

}  // namespace
}  // namespace attune::verify
