#include "server/trials/pace.h"

#include <gtest/gtest.h>

namespace attune::trials {
namespace {

TEST(TrialPace, SaysNothingBeforeEnoughTrialsHaveRun) {
  EXPECT_EQ(TimeLeft({.run = 3, .device = absl::Seconds(3), .compiling = absl::ZeroDuration()}, 70), std::nullopt);
  EXPECT_EQ(TimeLeft({}, 78), std::nullopt);
}

TEST(TrialPace, TheDeviceSetsThePaceWhereCompilingKeepsAhead) {
  EXPECT_EQ(TimeLeft({.run = 10, .device = absl::Seconds(20), .compiling = absl::Seconds(10), .compilers = 2}, 70),
            absl::Seconds(140));
}

// 8 of 78 that were compiled before the device was ready, 50 ms each on it; the other 70 take 3 s each to compile on
// two workers.
TEST(TrialPace, CodesCompiledBeforeTheDeviceWasReadyDoNotMakeTheRestLookShort) {
  EXPECT_EQ(TimeLeft({.run = 8, .device = absl::Milliseconds(400), .compiling = absl::Seconds(24), .compilers = 2}, 70),
            absl::Seconds(105));
}

TEST(TrialPace, NothingLeftTakesNoTime) {
  EXPECT_EQ(TimeLeft({.run = 8, .device = absl::Seconds(4), .compiling = absl::ZeroDuration()}, -1),
            absl::ZeroDuration());
}

}  // namespace
}  // namespace attune::trials
