#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/measure/fake_timer.h"
#include "server/measure/measure.h"

namespace attune::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Timer::Sample SampleOf(double us) {
  Timer::Sample sample;
  sample.us = us;
  return sample;
}

class PlayCycleTest : public ::testing::Test {
 protected:
  FakeTimer Steady(char name, double us) {
    return FakeTimer(
        world_, [us](int i, int) { return SampleOf(us * (1 + 0.001 * (i % 3 - 1))); }, name);
  }
  std::vector<RoundTimes> Play(const std::vector<Timer*>& timers, int rounds = 0, uint64_t seed = 1) {
    absl::StatusOr<std::vector<RoundTimes>> results = PlayCycle(timers, v1::POLICY_HOT, options_, rounds, seed);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *results : std::vector<RoundTimes>(timers.size());
  }

  FakeWorld world_;
  Options options_ = world_.MakeOptions();
};

TEST_F(PlayCycleTest, OfNobodyIsEmpty) { EXPECT_TRUE(Play({}).empty()); }

TEST_F(PlayCycleTest, SamplesEachOnceARound) {
  FakeTimer a = Steady('a', 100), b = Steady('b', 102), c = Steady('c', 104);
  const std::vector<RoundTimes> results = Play({&a, &b, &c});
  ASSERT_THAT(results, SizeIs(3));
  for (const RoundTimes& result : results) {
    EXPECT_THAT(result.us, SizeIs(9));
    EXPECT_EQ(result.timing.samples(), 9);
  }
  const std::string order(world_.order.end() - 27, world_.order.end());
  for (size_t round = 0; round < 27; round += 3) {
    const std::set<char> who(order.begin() + round, order.begin() + round + 3);
    EXPECT_EQ(who, (std::set<char>{'a', 'b', 'c'})) << order;
  }
}

TEST_F(PlayCycleTest, DrawsTheOrderAnewForEachRoundAndBySeed) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    FakeTimer a = Steady('a', 100), b = Steady('b', 100), c = Steady('c', 100);
    Play({&a, &b, &c}, 0, seed);
    const std::string order(world_.order.end() - 27, world_.order.end());
    orders.insert(order);
    std::map<char, int> followers;  // of 'a', within a round
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      if (order[i] == 'a' && i % 3 < 2) ++followers[order[i + 1]];
    }
    EXPECT_THAT(followers, SizeIs(2)) << order;
  }
  EXPECT_THAT(orders, SizeIs(3));
}

TEST_F(PlayCycleTest, TakesAsManyRoundsAsAreAskedFor) {
  FakeTimer a = Steady('a', 100), b = Steady('b', 100);
  EXPECT_THAT(Play({&a, &b}, 5).front().us, SizeIs(5));
}

TEST_F(PlayCycleTest, SlowOnesHaveThreeRounds) {
  FakeTimer a = Steady('a', 60'000), b = Steady('b', 60'000);
  EXPECT_THAT(Play({&a, &b}).front().us, SizeIs(3));
}

TEST_F(PlayCycleTest, ASampleThatDoesNotCountKeepsItsPlaceInTheRounds) {
  FakeTimer cooled(
      world_,
      [](int i, int) {
        Timer::Sample sample = SampleOf(i == 4 ? 150 : 100);
        sample.sm_clock_mhz = i == 4 ? 900 : 1900;
        return sample;
      },
      'b');
  FakeTimer a = Steady('a', 100);
  const std::vector<RoundTimes> results = Play({&a, &cooled}, 4);
  EXPECT_THAT(results[1].us, ElementsAre(100, 100, 0, 100));
  EXPECT_THAT(results[0].us, SizeIs(4));
}

TEST_F(PlayCycleTest, PassesTheDevicesErrorOn) {
  FakeTimer good = Steady('a', 100);
  FakeTimer bad(
      world_, [](int, int) { return absl::AbortedError("fault"); }, 'b');
  EXPECT_EQ(PlayCycle({&good, &bad}, v1::POLICY_HOT, options_, 0, 1).status().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace attune::measure
