#include "server/workers/device_lock.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/workers/testing/processes.h"

namespace attune::workers {
namespace {

using ::testing::HasSubstr;

class DeviceLockTest : public ::testing::Test {
 protected:
  absl::StatusOr<DeviceLock> Take(const char* id, const char* uuid = "") {
    v1::Device device;
    device.set_id(id);
    device.set_uuid(uuid);
    return DeviceLock::Take(directory_.path() + "/a/b", device);
  }
  TemporaryDirectory directory_;
};

TEST_F(DeviceLockTest, IsHeldByOneAtATime) {
  {
    const absl::StatusOr<DeviceLock> lock = Take("cuda:0");
    ASSERT_TRUE(lock.ok()) << lock.status();
    const absl::Status status = Take("cuda:0").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("process ", getpid(), ",")));
    EXPECT_TRUE(Take("cuda:1").ok());
  }
  EXPECT_TRUE(Take("cuda:0").ok());
}

TEST_F(DeviceLockTest, IsThePhysicalDevicesWhateverItsIndex) {
  const absl::StatusOr<DeviceLock> lock = Take("cuda:0", "GPU-1234");
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Take("cuda:1", "GPU-1234").status()));
}

TEST_F(DeviceLockTest, AnIdWithSlashesStaysInTheDirectory) {
  ASSERT_TRUE(Take("../../x").ok());
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/a/b/______x.lock"));
}

TEST(DeviceLock, NeedsADirectory) {
  EXPECT_TRUE(absl::IsInvalidArgument(DeviceLock::Take("", v1::Device()).status()));
  EXPECT_THAT(std::string(DeviceLock::Take("/proc/none", v1::Device()).status().message()), HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace attune::workers
