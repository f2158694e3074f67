#include "server/workers/remembered_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace attune::workers {
namespace {

class RememberedHost : public ::testing::Test {
 protected:
  RememberedHost() {
    host_.devices.emplace_back().set_id("cuda:0");
    host_.backends.emplace_back().set_compiler("nvrtc 13.0");
  }
  ~RememberedHost() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = ::testing::TempDir() + "/remembered_host";
  const std::string file_ = directory_ + "/host.binpb";
  HostDescription host_;
};

TEST_F(RememberedHost, IsRecalledAsItWas) {
  std::filesystem::create_directories(directory_);
  ASSERT_TRUE(RememberHost(file_, host_).ok());
  const auto recalled = RecallHost(file_);
  ASSERT_TRUE(recalled.ok()) << recalled.status();
  EXPECT_TRUE(SameHost(*recalled, host_));
}

TEST_F(RememberedHost, IsAnotherOnceItsDriverIs) {
  HostDescription upgraded = host_;
  upgraded.devices[0].set_driver("999.9");
  EXPECT_FALSE(SameHost(upgraded, host_));
}

TEST_F(RememberedHost, IsTheSameWithMoreMemory) {
  HostDescription grown = host_;
  grown.devices[0].set_memory_bytes(1 << 30);
  EXPECT_TRUE(SameHost(grown, host_));
}

TEST_F(RememberedHost, IsNotFoundBeforeTheFirstProbe) {
  EXPECT_EQ(RecallHost(file_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RememberedHost, ADamagedFileIsNotBelieved) {
  std::filesystem::create_directories(directory_);
  std::ofstream(file_) << "\xff not a message";
  EXPECT_EQ(RecallHost(file_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(RememberedHost, CannotBeKeptWhereThereIsNoDirectory) {
  EXPECT_EQ(RememberHost(file_, host_).code(), absl::StatusCode::kUnavailable);
}

TEST_F(RememberedHost, HasAFileOfItsOwnUnderEmulatedLimits) {
  EXPECT_EQ(HostFile("/data", {}), "/data/host.binpb");
  WorkerOptions l4;
  l4.emulate = "l4";
  EXPECT_EQ(HostFile("/data", l4), "/data/host-l4.binpb");
}

}  // namespace
}  // namespace attune::workers
