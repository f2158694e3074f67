#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/measure/fake_timer.h"
#include "server/measure/measure.h"

namespace attune::measure {
namespace {

Timer::Sample SampleOf(double us) {
  Timer::Sample sample;
  sample.us = us;
  return sample;
}

class PlayOffTest : public ::testing::Test {
 protected:
  FakeTimer Steady(char name, double us) {
    return FakeTimer(
        world_, [us](int i, int) { return SampleOf(us * (1 + 0.001 * (i % 3 - 1))); }, name);
  }
  std::vector<v1::Timing> Play(const std::vector<Timer*>& timers) {
    absl::StatusOr<std::vector<v1::Timing>> timings = PlayOff(timers, v1::POLICY_HOT, options_);
    EXPECT_TRUE(timings.ok()) << timings.status();
    return timings.ok() ? *timings : std::vector<v1::Timing>(timers.size());
  }

  FakeWorld world_;
  const absl::Time start_ = world_.time;
  Options options_ = world_.MakeOptions();
};

TEST_F(PlayOffTest, OfNobodyIsEmpty) { EXPECT_TRUE(Play({}).empty()); }

TEST_F(PlayOffTest, TellsContestantsApart) {
  FakeTimer slow = Steady('a', 102), fast = Steady('b', 100);
  const std::vector<v1::Timing> timings = Play({&slow, &fast});
  EXPECT_EQ(Compare(timings[1], timings[0]), Comparison::kFaster);
  EXPECT_TRUE(timings[0].settled());
  EXPECT_TRUE(timings[1].settled());
}

TEST_F(PlayOffTest, WarmsEveryoneUpAndThenRotatesWhoGoesFirst) {
  FakeTimer a = Steady('a', 100), b = Steady('b', 100), c = Steady('c', 100);
  options_.min_samples = options_.max_samples = 4;
  Play({&a, &b, &c});
  const std::string order(world_.order.end() - 12, world_.order.end());
  EXPECT_EQ(order, "abcbcacababc");
  EXPECT_EQ(std::string(world_.order.begin(), world_.order.end() - 12), "aabbcc");
}

TEST_F(PlayOffTest, GivesEveryoneTheSameNumberOfSamples) {
  FakeTimer quiet = Steady('a', 100);
  FakeTimer noisy(
      world_, [](int i, int) { return SampleOf(i % 2 == 0 ? 100 : 110); }, 'b');
  const std::vector<v1::Timing> timings = Play({&quiet, &noisy});
  EXPECT_EQ(timings[0].samples(), options_.max_samples);
  EXPECT_EQ(timings[1].samples(), options_.max_samples);
}

TEST_F(PlayOffTest, DoesNotCallDriftADifference) {
  // The device slows down by 15 % while it is used; measured one after the other, the second would look slower.
  const auto drifting = [this](int, int) {
    return SampleOf(100 * (1 + 0.15 * absl::ToDoubleSeconds(world_.time - start_) / 0.1));
  };
  FakeTimer a(world_, drifting, 'a'), b(world_, drifting, 'b');
  const v1::Timing first = Measure(a, v1::POLICY_HOT, options_, 0).value();
  const v1::Timing second = Measure(b, v1::POLICY_HOT, options_, 0).value();
  EXPECT_EQ(Compare(second, first), Comparison::kSlower);

  world_.time = start_;
  FakeTimer c(world_, drifting, 'c'), d(world_, drifting, 'd');
  const std::vector<v1::Timing> timings = Play({&c, &d});
  EXPECT_EQ(Compare(timings[1], timings[0]), Comparison::kTie);
}

TEST_F(PlayOffTest, StopsWhenEveryonesTimeTogetherIsUp) {
  const auto slow = [](int i, int) { return SampleOf(i % 2 == 0 ? 40'000 : 60'000); };
  FakeTimer a(world_, slow, 'a'), b(world_, slow, 'b');
  const std::vector<v1::Timing> timings = Play({&a, &b});
  EXPECT_EQ(timings[0].samples(), 6);
  EXPECT_EQ(timings[1].samples(), 6);
}

TEST_F(PlayOffTest, PassesTheDevicesErrorOn) {
  FakeTimer good = Steady('a', 100);
  FakeTimer bad(
      world_, [](int, int) { return absl::AbortedError("fault"); }, 'b');
  EXPECT_EQ(PlayOff({&good, &bad}, v1::POLICY_HOT, options_).status().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace attune::measure
