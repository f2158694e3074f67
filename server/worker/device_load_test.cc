#include "server/worker/device_load.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "server/verify/testing/fake_device.h"

namespace attune::worker {
namespace {

// Each run takes 8 us.
class CountingDevice : public verify::FakeDevice {
 public:
  absl::StatusOr<double> TimeHot(absl::Span<device::Runnable* const>, int runs) override {
    lengths.insert(runs);
    all += runs;
    return 8e-6;
  }

  std::set<int> lengths;  // of graphs
  int all = 0;            // runs
};

// A new length is replayed uncounted by the device.
TEST(DeviceLoad, RunsWhatItIsAskedForInGraphsOfFewLengths) {
  CountingDevice device;
  device::Runnable* const none[] = {nullptr};
  DeviceLoad load(device, none, attune::v1::POLICY_HOT);
  int asked = 0;
  for (int runs : {1, 600, 625, 630, 617, 999, 1000}) {
    const absl::StatusOr<double> us = load.Run(runs);
    ASSERT_TRUE(us.ok()) << us.status();
    EXPECT_DOUBLE_EQ(*us, 8);
    asked += runs;
    EXPECT_EQ(device.all, asked);
  }
  for (int length : device.lengths) EXPECT_EQ(length & (length - 1), 0) << length;
}

}  // namespace
}  // namespace attune::worker
