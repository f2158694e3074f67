#include "server/device/cuda/launch_check.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"

namespace attune::device::cuda {
namespace {

using ::testing::HasSubstr;

v1::KernelLaunch Launch() {
  v1::KernelLaunch launch;
  launch.set_entry("run");
  for (v1::Dim3* dim3 : {launch.mutable_grid(), launch.mutable_block()}) {
    dim3->set_x(32);
    dim3->set_y(1);
    dim3->set_z(1);
  }
  return launch;
}

v1::KernelLaunch InClusters(int64_t x, int64_t y = 1) {
  v1::KernelLaunch launch = Launch();
  launch.mutable_grid()->set_y(4);
  launch.mutable_cluster()->set_x(x);
  launch.mutable_cluster()->set_y(y);
  launch.mutable_cluster()->set_z(1);
  return launch;
}

absl::Status Check(const v1::KernelLaunch& launch, const char* profile = "h100") {
  return CheckDimensions(*DeviceProfile(profile), launch);
}

TEST(CheckDimensions, TakesClustersThatDivideTheGrid) {
  EXPECT_EQ(Check(InClusters(2, 4)), absl::OkStatus());
  EXPECT_EQ(Check(InClusters(16)), absl::OkStatus());
}

TEST(CheckDimensions, RefusesClustersThatDoNot) {
  EXPECT_EQ(Check(InClusters(3)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Check(InClusters(3)).message()),
              HasSubstr("kernel run: cluster is 3x1x1; it must divide the grid, 32x4x1"));
  EXPECT_THAT(std::string(Check(InClusters(0)).message()), HasSubstr("cluster.x is 0; it must be at least 1"));
}

TEST(CheckDimensions, RefusesClustersThatAreTooLarge) {
  EXPECT_EQ(Check(InClusters(16, 2)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Check(InClusters(32)).message()), HasSubstr("cluster.x is 32; at most 16 is possible"));
}

TEST(CheckDimensions, ClustersAndOverlapsNeedTheDevicesHelp) {
  EXPECT_EQ(Check(InClusters(2), "l4").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Check(InClusters(2), "l4").message()), HasSubstr("compute capability is 89"));
  v1::KernelLaunch overlapping = Launch();
  overlapping.set_overlaps_previous(true);
  EXPECT_EQ(Check(overlapping), absl::OkStatus());
  EXPECT_THAT(std::string(Check(overlapping, "l4").message()), HasSubstr("overlaps_previous is given"));
}

}  // namespace
}  // namespace attune::device::cuda
