#include "server/measure/measure.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/measure/fake_timer.h"

namespace attune::measure {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

constexpr double kNoLeader = 0;

Timer::Sample At(double us, int sm_clock_mhz = 1900) {
  Timer::Sample sample;
  sample.us = us;
  sample.sm_clock_mhz = sm_clock_mhz;
  return sample;
}

// 100 us, with a spread of +-0.1 %.
double Quiet(int i) { return 100 + 0.1 * (i % 3 - 1); }

class MeasureTest : public ::testing::Test {
 protected:
  v1::Timing Hot(FakeTimer& timer, double leader_us = kNoLeader) {
    absl::StatusOr<v1::Timing> timing = Measure(timer, v1::POLICY_HOT, options_, leader_us);
    EXPECT_TRUE(timing.ok()) << timing.status();
    return timing.value_or(v1::Timing());
  }

  FakeWorld world_;
  Options options_ = world_.MakeOptions();
};

TEST_F(MeasureTest, SettlesOnAQuietContestantWithTheFewestSamples) {
  FakeTimer timer(world_, [](int i, int) { return At(Quiet(i)); });
  const v1::Timing timing = Hot(timer);
  EXPECT_TRUE(timing.settled());
  EXPECT_EQ(timing.samples(), options_.min_samples);
  EXPECT_EQ(timing.discarded(), 0);
  EXPECT_DOUBLE_EQ(timing.median_us(), 100);
  EXPECT_DOUBLE_EQ(timing.min_us(), 99.9);
  ASSERT_EQ(timing.quantiles_us_size(), 33);
  EXPECT_FLOAT_EQ(timing.quantiles_us(0), 99.9);
  EXPECT_FLOAT_EQ(timing.quantiles_us(16), 100);
  EXPECT_EQ(timing.sm_clock_mhz(), 1900);
}

TEST_F(MeasureTest, DoesNotCountWarmUpSamples) {
  FakeTimer timer(world_, [](int i, int) { return At(i < 3 ? 1000.0 / (i + 1) : 100); });
  const v1::Timing timing = Hot(timer);
  EXPECT_DOUBLE_EQ(timing.high_us(), 100);
  EXPECT_EQ(timing.discarded(), 0);
}

TEST_F(MeasureTest, LengthensTheGraphUntilASampleTakesTheSampleTime) {
  // A graph costs 6 us whatever its length, so that the first one, of one run, overstates a run of 1 us.
  FakeTimer timer(world_, [](int, int runs) { return At(1 + 6.0 / runs); });
  Hot(timer);
  EXPECT_EQ(timer.runs().front(), 1);
  EXPECT_GE(timer.runs().back(), 200);
  EXPECT_LE(timer.runs().back(), 800);
}

TEST_F(MeasureTest, KeepsTheGraphWithinAThousandRuns) {
  FakeTimer timer(world_, [](int, int) { return At(0.01); });
  Hot(timer);
  EXPECT_EQ(timer.runs().back(), 1000);
}

TEST_F(MeasureTest, TakesOneRunASampleWhenTheContestantIsSlow) {
  FakeTimer timer(world_, [](int, int) { return At(5000); });
  Hot(timer);
  EXPECT_THAT(timer.runs(), Each(1));
}

TEST_F(MeasureTest, TakesOneRunASampleWhenCold) {
  FakeTimer timer(world_, [](int, int) { return At(2); });
  ASSERT_TRUE(Measure(timer, v1::POLICY_COLD, options_, kNoLeader).ok());
  EXPECT_THAT(timer.runs(), Each(1));
}

TEST_F(MeasureTest, AnIntervalIsAsWideAsTheClocksStepAtLeast) {
  FakeTimer timer(world_, [](int, int) {
    Timer::Sample sample = At(2);
    sample.step_us = 0.5;
    return sample;
  });
  const absl::StatusOr<v1::Timing> timing = Measure(timer, v1::POLICY_COLD, options_, kNoLeader);
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_DOUBLE_EQ(timing->median_us(), 2);
  EXPECT_DOUBLE_EQ(timing->low_us(), 1.75);
  EXPECT_DOUBLE_EQ(timing->high_us(), 2.25);
  EXPECT_FALSE(timing->settled()) << "a step is a quarter of it";
}

TEST_F(MeasureTest, KeepsTheSameGraphWhileItSamples) {
  FakeTimer timer(world_, [](int i, int) { return At(Quiet(i)); });
  const int samples = Hot(timer).samples();
  EXPECT_THAT(std::vector<int>(timer.runs().end() - samples, timer.runs().end()), Each(timer.runs().back()));
}

TEST_F(MeasureTest, IsNotMovedByOutliers) {
  FakeTimer timer(world_, [](int i, int) { return At(i % 6 == 5 ? 900 : Quiet(i)); });
  const v1::Timing timing = Hot(timer);
  EXPECT_TRUE(timing.settled());
  EXPECT_NEAR(timing.median_us(), 100, 0.2);
  EXPECT_LT(timing.high_us(), 101);
}

TEST_F(MeasureTest, SaysThatANoisyContestantDidNotSettle) {
  FakeTimer timer(world_, [](int i, int) { return At(i % 2 == 0 ? 100 : 104); });
  const v1::Timing timing = Hot(timer);
  EXPECT_FALSE(timing.settled());
  EXPECT_EQ(timing.samples(), options_.max_samples);
  EXPECT_GE(timing.high_us() - timing.low_us(), 4);
}

TEST_F(MeasureTest, SaysThatADriftingContestantDidNotSettle) {
  FakeTimer timer(world_, [](int i, int) { return At(100 * std::pow(1.01, i)); });
  EXPECT_FALSE(Hot(timer).settled());
}

TEST_F(MeasureTest, ThrowsThrottledSamplesAwayAndPausesAfterEach) {
  FakeTimer timer(world_, [](int i, int) { return i % 4 == 3 ? At(180, 1000) : At(Quiet(i)); });
  const v1::Timing timing = Hot(timer);
  EXPECT_TRUE(timing.settled());
  EXPECT_LT(timing.high_us(), 101);
  EXPECT_GT(timing.discarded(), 0);
  EXPECT_EQ(timer.pauses(), timing.discarded());
}

TEST_F(MeasureTest, ThrowsAwayWhatItTookWhileTheClockWasStillRising) {
  // Two samples agree and end the warm-up; only then does the clock rise.
  FakeTimer timer(world_, [](int i, int) { return i < 6 ? At(550, 345) : At(Quiet(i), 1980); });
  const v1::Timing timing = Hot(timer);
  EXPECT_NEAR(timing.median_us(), 100, 0.2);
  EXPECT_LT(timing.high_us(), 101);
  EXPECT_EQ(timing.sm_clock_mhz(), 1980);
}

TEST_F(MeasureTest, TakesAClockThatNeverComesBackForTheSustainedOne) {
  FakeTimer timer(world_, [](int i, int) { return i < 4 ? At(Quiet(i), 2000) : At(2 * Quiet(i), 1000); });
  const v1::Timing timing = Hot(timer);
  EXPECT_TRUE(timing.settled());
  EXPECT_NEAR(timing.median_us(), 200, 0.4);
  EXPECT_EQ(timing.sm_clock_mhz(), 1000);
}

TEST_F(MeasureTest, DiscardsNothingWhenNobodyCanReadTheClock) {
  FakeTimer timer(world_, [](int i, int) { return At(Quiet(i), 0); });
  EXPECT_EQ(Hot(timer).discarded(), 0);
}

TEST_F(MeasureTest, LeavesOutTheFewSamplesThatAnotherProcessTouched) {
  FakeTimer timer(world_, [](int i, int) {
    Timer::Sample sample = At(i % 4 == 3 ? 150 : Quiet(i));
    sample.contended = i % 4 == 3;
    return sample;
  });
  const v1::Timing timing = Hot(timer);
  EXPECT_FALSE(timing.contended());
  EXPECT_GT(timing.discarded(), 0);
  EXPECT_LT(timing.high_us(), 101);
}

TEST_F(MeasureTest, IsContendedWhenAnotherProcessStays) {
  FakeTimer timer(world_, [](int i, int) {
    Timer::Sample sample = At(Quiet(i));
    sample.contended = i != 5;
    return sample;
  });
  EXPECT_TRUE(Hot(timer).contended());
}

TEST_F(MeasureTest, StopsEarlyWhenItHasLostTheRace) {
  FakeTimer timer(world_, [](int i, int) { return At(i % 2 == 0 ? 100 : 120); });
  const v1::Timing timing = Hot(timer, /*leader_us=*/90);
  EXPECT_EQ(timing.samples(), 5);
  EXPECT_FALSE(timing.settled());
  EXPECT_GT(timing.low_us(), 90);
}

TEST_F(MeasureTest, BeginsWithAGraphOfTheLikelyLength) {
  options_.likely_us = 8;
  FakeTimer timer(world_, [](int, int) { return At(8); });
  EXPECT_TRUE(Hot(timer).settled());
  EXPECT_EQ(timer.runs().front(), 50);
}

TEST_F(MeasureTest, SaysThatItWasGivenUp) {
  FakeTimer slow(world_, [](int i, int) { return At(1.05 * Quiet(i)); }),
      even(world_, [](int i, int) { return At(Quiet(i)); });
  EXPECT_TRUE(Hot(slow, /*leader_us=*/100).given_up());
  EXPECT_FALSE(Hot(even, /*leader_us=*/100).given_up());
}

TEST_F(MeasureTest, GivesNobodyUpForWhatOneSessionDiffersFromAnother) {
  FakeTimer timer(world_, [](int i, int) { return At(1.025 * Quiet(i)); });
  const v1::Timing timing = Hot(timer, /*leader_us=*/100);
  EXPECT_FALSE(timing.given_up());
  EXPECT_TRUE(timing.settled());
}

TEST_F(MeasureTest, LooksWhetherToGiveUpAtFiveNineAndSeventeenSamplesAlone) {
  // The first sample that counts is as fast as the leader; without it, from 9 samples on, the interval lies above.
  FakeTimer timer(world_, [](int i, int) { return At(i == 2 ? 100 : i % 2 == 0 ? 118 : 120); });
  const v1::Timing timing = Hot(timer, /*leader_us=*/100);
  EXPECT_TRUE(timing.given_up());
  EXPECT_EQ(timing.samples(), 9);
}

TEST_F(MeasureTest, LooksWhetherItHasSettledAtAFewCountsAlone) {
  // With 9 samples the outlier is outside of the interval.
  FakeTimer timer(world_, [](int i, int) { return At(i == 5 ? 105 : Quiet(i)); });
  const v1::Timing timing = Hot(timer);
  EXPECT_TRUE(timing.settled());
  EXPECT_EQ(timing.samples(), 11);
}

TEST_F(MeasureTest, FewSamplesHaveToAgreeBetterThanMany) {
  const auto within = [](double width) { return [width](int i, int) { return At(100 + width / 2 * (i % 3 - 1)); }; };
  FakeTimer narrow(world_, within(0.3)), wide(world_, within(0.5));
  EXPECT_EQ(Hot(narrow).samples(), 7);
  EXPECT_GT(Hot(wide).samples(), 7);
  EXPECT_TRUE(Hot(wide).settled());
}

TEST_F(MeasureTest, GoesOnWhileItsIntervalReachesTheLeader) {
  FakeTimer timer(world_, [](int i, int) { return At(i % 2 == 0 ? 100 : 120); });
  EXPECT_EQ(Hot(timer, /*leader_us=*/100).samples(), options_.max_samples);
}

TEST_F(MeasureTest, StopsWhenItsTimeIsUp) {
  FakeTimer timer(world_, [](int i, int) { return At(i % 2 == 0 ? 40'000 : 60'000); });
  const v1::Timing timing = Hot(timer);
  EXPECT_EQ(timing.samples(), 6);
  EXPECT_FALSE(timing.settled());
}

TEST_F(MeasureTest, TakesThreeSamplesOfEvenTheSlowest) {
  FakeTimer timer(world_, [](int, int) { return At(2e6); });
  EXPECT_EQ(Hot(timer).samples(), 3);
}

TEST_F(MeasureTest, WarmsTheSlowestWithOneSample) {
  FakeTimer timer(world_, [](int, int) { return At(2e6); });
  Hot(timer);
  EXPECT_EQ(timer.runs().size(), 1 + 3);
}

TEST_F(MeasureTest, ReportsTheTelemetryOfItsSamples) {
  FakeTimer timer(world_, [](int i, int) {
    Timer::Sample sample = At(Quiet(i));
    sample.power_w = 60 + i;
    sample.temperature_c = 50;
    sample.throttle_reasons = i % 2 == 0 ? 4 : 32;
    return sample;
  });
  const v1::Timing timing = Hot(timer);
  EXPECT_EQ(timing.throttle_reasons(), 36);
  EXPECT_EQ(timing.temperature_c(), 50);
  EXPECT_THAT(timing.power_w(), AllOf(Ge(60), Le(80)));
}

TEST_F(MeasureTest, PassesTheDevicesErrorOn) {
  FakeTimer timer(world_, [](int i, int) -> absl::StatusOr<Timer::Sample> {
    if (i == 5) return absl::AbortedError("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
    return At(Quiet(i));
  });
  EXPECT_EQ(Measure(timer, v1::POLICY_HOT, options_, kNoLeader).status().code(), absl::StatusCode::kAborted);
}

TEST_F(MeasureTest, RefusesATimeThatIsNone) {
  for (double us : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    FakeTimer timer(world_, [us](int, int) { return At(us); });
    EXPECT_EQ(Measure(timer, v1::POLICY_HOT, options_, kNoLeader).status().code(), absl::StatusCode::kInternal) << us;
  }
}

}  // namespace
}  // namespace attune::measure
