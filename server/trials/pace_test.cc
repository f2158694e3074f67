#include "server/trials/pace.h"

#include <gtest/gtest.h>

#include <utility>

namespace attune::trials {
namespace {

TEST(TrialPace, SaysNothingBeforeEnoughTrialsHaveRun) {
  EXPECT_EQ(TimeLeft({.run = 3, .device = absl::Seconds(3)}, 70, 70), std::nullopt);
  EXPECT_EQ(TimeLeft({}, 78, 78), std::nullopt);
}

TEST(TrialPace, TheDeviceSetsThePaceWhereCompilingKeepsAhead) {
  const TrialPace pace = {
      .run = 10, .device = absl::Seconds(20), .codes = 10, .compiling = absl::Seconds(10), .compilers = 2};
  EXPECT_EQ(TimeLeft(pace, 70, 70), absl::Seconds(140));
}

// 8 of 78 that were compiled before the device was ready, 50 ms each on it; the other 70 take 3 s each to compile on
// two workers.
TEST(TrialPace, CodesCompiledBeforeTheDeviceWasReadyDoNotMakeTheRestLookShort) {
  const TrialPace pace = {
      .run = 8, .device = absl::Milliseconds(400), .codes = 8, .compiling = absl::Seconds(24), .compilers = 2};
  EXPECT_EQ(TimeLeft(pace, 70, 70), absl::Seconds(105));
}

// 100 of 500 trials, of 40 codes that took 2 s each; the other 400 share 10 more.
TEST(TrialPace, TrialsThatShareCodesThatAreThereDoNotWaitForCompilers) {
  const TrialPace pace = {
      .run = 100, .device = absl::Seconds(1), .codes = 40, .compiling = absl::Seconds(80), .compilers = 4};
  EXPECT_EQ(TimeLeft(pace, 400, 10), absl::Seconds(5));
  EXPECT_EQ(TimeLeft(pace, 400, 0), absl::Seconds(4));
}

TEST(TrialPace, NoMoreCodesAreCompiledThanTrialsAreLeft) {
  const TrialPace pace = {
      .run = 10, .device = absl::Seconds(1), .codes = 10, .compiling = absl::Seconds(20), .compilers = 1};
  EXPECT_EQ(TimeLeft(pace, 5, 50), absl::Seconds(10));
}

TEST(TrialPace, NothingLeftTakesNoTime) {
  EXPECT_EQ(TimeLeft({.run = 8, .device = absl::Seconds(4)}, -1, -1), absl::ZeroDuration());
}

// Seconds of preparing, and of the play-off with its checks, on an H200.
TEST(PlayOffTime, IsWithinHalfASecondOfWhatWasMeasured) {
  for (const auto& [prepare, measured] : {std::pair(0.12, 0.48), {0.55, 1.7}, {1.16, 1.97}, {2.64, 5.04}}) {
    EXPECT_NEAR(absl::ToDoubleSeconds(PlayOffTime(absl::Seconds(prepare))), measured, 0.5) << prepare;
  }
}

}  // namespace
}  // namespace attune::trials
