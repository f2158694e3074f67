// Where a device's lock is, on the vectors that the bench's Python shares: both must look in one place.
#include <filesystem>

#include "gtest/gtest.h"
#include "server/base/testing/processes.h"
#include "server/worker/device_lock.h"
#include "tests/golden/golden.h"

namespace attune::worker {
namespace {

TEST(GoldenDeviceLock, IsAFileNamedForTheDevice) {
  for (const auto& vector : Golden("device_lock", "files")) {
    const TemporaryDirectory directory;
    v1::Device device;
    device.set_id(vector["id"].get<std::string>());
    device.set_uuid(vector["uuid"].get<std::string>());
    const absl::StatusOr<DeviceLock> lock = DeviceLock::Take(directory.path() + "/locks", device);
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(std::filesystem::exists(directory.path() + "/locks/" + vector["file"].get<std::string>())) << vector;
  }
}

}  // namespace
}  // namespace attune::worker
