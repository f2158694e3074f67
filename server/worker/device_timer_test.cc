#include "server/worker/device_timer.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/fake_device.h"

namespace attune::worker {
namespace {

using ::testing::ElementsAre;

// Its graphs take these seconds a run, one after the other.
class ScriptedDevice : public verify::FakeDevice {
 public:
  absl::StatusOr<double> TimeHot(absl::Span<device::Runnable* const>, int runs) override {
    graphs.push_back(runs);
    return times.at(graphs.size() - 1);
  }

  std::vector<double> times;
  std::vector<int> graphs;  // runs of each
};

double Take(ScriptedDevice& device, int runs) {
  device::Runnable* const none[] = {nullptr};
  const absl::StatusOr<measure::Timer::Sample> sample = DeviceTimer(device, none, attune::v1::POLICY_HOT).Take(runs);
  EXPECT_TRUE(sample.ok()) << sample.status();
  return sample.ok() ? sample->us : 0;
}

TEST(DeviceTimer, AShortSingleRunIsReplayedAtOnceAndTheSecondCounts) {
  ScriptedDevice device;
  device.times = {60e-6, 51e-6};
  EXPECT_DOUBLE_EQ(Take(device, 1), 51);
  EXPECT_THAT(device.graphs, ElementsAre(1, 1));
}

TEST(DeviceTimer, ALongRunOrSeveralAreTimedOnce) {
  ScriptedDevice device;
  device.times = {500e-6, 60e-6};
  EXPECT_DOUBLE_EQ(Take(device, 1), 500);
  EXPECT_DOUBLE_EQ(Take(device, 2), 60);
  EXPECT_THAT(device.graphs, ElementsAre(1, 2));
}

}  // namespace
}  // namespace attune::worker
