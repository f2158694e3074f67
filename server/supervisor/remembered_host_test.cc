#include "server/supervisor/remembered_host.h"

#include "gtest/gtest.h"

namespace attune::supervisor {
namespace {

HostDescription Host() {
  HostDescription host;
  host.devices.emplace_back().set_id("cuda:0");
  host.backends.emplace_back().set_compiler("nvrtc 13.0");
  return host;
}

TEST(RememberedHost, IsReadAsItWasWritten) {
  const absl::StatusOr<HostDescription> read = ReadHost(WriteHost(Host()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(SameHost(*read, Host()));
}

TEST(RememberedHost, IsAnotherOnceItsDriverIs) {
  HostDescription upgraded = Host();
  upgraded.devices[0].set_driver("999.9");
  EXPECT_FALSE(SameHost(upgraded, Host()));
}

TEST(RememberedHost, IsTheSameWithMoreMemory) {
  HostDescription grown = Host();
  grown.devices[0].set_memory_bytes(1 << 30);
  EXPECT_TRUE(SameHost(grown, Host()));
}

TEST(RememberedHost, IsNotBelievedWhenDamaged) {
  EXPECT_EQ(ReadHost("\xff not a message").status().code(), absl::StatusCode::kDataLoss);
}

TEST(RememberedHost, HasAFileOfItsOwnUnderEmulatedLimits) {
  EXPECT_EQ(HostFileName({}), "host.binpb");
  WorkerOptions l4;
  l4.emulate = "l4";
  EXPECT_EQ(HostFileName(l4), "host-l4.binpb");
}

}  // namespace
}  // namespace attune::supervisor
