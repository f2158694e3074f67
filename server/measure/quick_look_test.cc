#include "server/measure/quick_look.h"

#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "server/measure/fake_timer.h"
#include "server/measure/testing/simulated_gpu.h"

namespace attune::measure {
namespace {

constexpr double kLeaderUs = 1000;
constexpr int kClock = 1900;

class QuickLookTest : public ::testing::Test {
 protected:
  QuickTime Look(std::function<double(int i, int runs)> us, int clock_mhz = kClock, bool contended = false,
                 const Leader& leader = {kLeaderUs, kClock}) {
    FakeTimer timer(world_, [&](int i, int runs) {
      Timer::Sample sample;
      sample.us = us(i, runs);
      sample.sm_clock_mhz = clock_mhz;
      sample.contended = contended;
      return sample;
    });
    const absl::StatusOr<QuickTime> quick = QuickLook(timer, v1::POLICY_HOT, options_, leader);
    EXPECT_TRUE(quick.ok()) << quick.status();
    runs_ = timer.runs();
    return quick.value_or(QuickTime());
  }

  FakeWorld world_;
  Options options_ = world_.MakeOptions();
  std::vector<int> runs_;  // of each sample of the last look
};

TEST_F(QuickLookTest, TakesOneSampleOfWhatIsHopeless) {
  const QuickTime quick = Look([](int, int) { return 1600; });
  ASSERT_TRUE(quick.given_up.has_value());
  EXPECT_EQ(runs_, std::vector<int>({1}));
  EXPECT_TRUE(quick.given_up->given_up());
  EXPECT_FALSE(quick.given_up->settled());
  EXPECT_EQ(quick.given_up->samples(), 1);
  EXPECT_DOUBLE_EQ(quick.given_up->median_us(), 1600);
}

TEST_F(QuickLookTest, TakesThreeOfWhatIsClearlySlower) {
  const QuickTime quick = Look([](int i, int) { return 1150 + 10 * i; });
  ASSERT_TRUE(quick.given_up.has_value());
  EXPECT_EQ(quick.given_up->samples(), 3);
  EXPECT_DOUBLE_EQ(quick.given_up->median_us(), 1160);
}

TEST_F(QuickLookTest, OneSampleNearTheLeaderIsEnoughToGoOn) {
  EXPECT_FALSE(Look([](int i, int) { return i < 2 ? 1400 : 1030; }).given_up.has_value());
  EXPECT_EQ(runs_.size(), 3);
  const QuickTime quick = Look([](int, int) { return 900; });
  EXPECT_FALSE(quick.given_up.has_value());
  EXPECT_EQ(runs_.size(), 1);
  EXPECT_DOUBLE_EQ(quick.us, 900);
}

TEST_F(QuickLookTest, FiveLongSamplesAreAsGoodAsThoseOfAWholeTiming) {
  const QuickTime quick = Look([](int i, int) { return 1040 + 10 * i; });
  ASSERT_TRUE(quick.given_up.has_value());
  EXPECT_EQ(quick.given_up->samples(), 5);
  EXPECT_DOUBLE_EQ(quick.given_up->median_us(), 1060);
  EXPECT_FALSE(Look([](int i, int) { return i < 4 ? 1090 : 1030; }).given_up.has_value());
  EXPECT_EQ(runs_.size(), 5);
}

TEST_F(QuickLookTest, ShortSamplesGiveUpOnlyWhatIsATenthSlower) {
  const Leader leader = {100, kClock};
  EXPECT_FALSE(Look([](int, int) { return 109; }, kClock, false, leader).given_up.has_value());
  EXPECT_EQ(runs_.size(), 1);
  const QuickTime quick = Look([](int, int) { return 112; }, kClock, false, leader);
  ASSERT_TRUE(quick.given_up.has_value());
  EXPECT_EQ(quick.given_up->samples(), 3);
}

TEST_F(QuickLookTest, TheTimeOfOneShortRunIsMostlyItsLaunch) {
  // 8 us and 4 us of a launch, which many runs hide.
  const QuickTime quick = Look([](int, int runs) { return 8 + 4.0 / runs; }, kClock, false, {8.2, kClock});
  EXPECT_FALSE(quick.given_up.has_value());
  ASSERT_EQ(runs_.size(), 2);
  EXPECT_EQ(runs_[1], 9);
}

TEST_F(QuickLookTest, WhatTheCheckedRunTookSizesTheFirstSample) {
  options_.likely_us = 13;  // 8 us, a launch, and two events
  Look([](int, int) { return 8; }, kClock, false, {7, kClock});
  EXPECT_EQ(runs_, std::vector<int>({8, 8, 8}));
  options_.likely_us = 1300;
  Look([](int, int) { return 1150; });
  EXPECT_EQ(runs_, std::vector<int>({1, 1, 1}));
}

TEST_F(QuickLookTest, ADeviceThatSlowsDownGivesNobodyUp) {
  EXPECT_FALSE(Look([](int, int) { return 1370; }, /*clock_mhz=*/kClock * 3 / 4).given_up.has_value());
  EXPECT_TRUE(Look([](int, int) { return 1500; }, /*clock_mhz=*/kClock * 3 / 4).given_up.has_value());
  // A higher clock is no reason to be given up.
  EXPECT_FALSE(Look([](int, int) { return 1030; }, /*clock_mhz=*/kClock * 5 / 4).given_up.has_value());
}

TEST_F(QuickLookTest, AnotherProcessOrNoLeaderGivesNobodyUp) {
  EXPECT_FALSE(Look([](int, int) { return 9000; }, kClock, /*contended=*/true).given_up.has_value());
  EXPECT_FALSE(Look([](int, int) { return 9000; }, kClock, false, Leader()).given_up.has_value());
  EXPECT_TRUE(runs_.empty());
}

TEST_F(QuickLookTest, ASampleThatTookNoTimeIsAnError) {
  FakeTimer timer(world_, [](int, int) { return Timer::Sample(); });
  EXPECT_EQ(QuickLook(timer, v1::POLICY_HOT, options_, {kLeaderUs, kClock}).status().code(),
            absl::StatusCode::kInternal);
}

// Under every condition that the other rules are held to (docs/benchmarks/2026-11-23-simulated-truth.md), at most one
// in a hundred of those that are as fast as the leader.
TEST(QuickLookOnSimulatedGpuTest, AnEqualOfTheLeaderIsAlmostNeverGivenUp) {
  constexpr int kLooks = 2000;
  for (const Noise& noise : Conditions()) {
    int given_up = 0;
    for (int i = 0; i < kLooks; ++i) {
      SimulatedGpu gpu(noise, 300 + i);
      Options options;
      options.now = [&gpu] { return gpu.now; };
      SimulatedTimer leader(gpu, kLeaderUs), equal(gpu, kLeaderUs);
      const double leader_us = Measure(leader, v1::POLICY_HOT, options, 0)->high_us();
      given_up += QuickLook(equal, v1::POLICY_HOT, options, {leader_us, 0})->given_up.has_value() ? 1 : 0;
    }
    EXPECT_LE(given_up, kLooks / 100) << noise.name;
  }
}

}  // namespace
}  // namespace attune::measure
