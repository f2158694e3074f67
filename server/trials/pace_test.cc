#include "server/trials/pace.h"

#include <gtest/gtest.h>

namespace attune::trials {
namespace {

const absl::Duration kStart = absl::Hours(1);

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

TEST(SweepPace, IsThatOfTheProblemsDone) {
  SweepPace pace(5, 0);
  pace.Begin(kStart);
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(9)), std::nullopt);
  pace.End(kStart + absl::Seconds(10));
  pace.Begin(kStart + absl::Seconds(10));
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(10)), absl::Seconds(40));
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(14)), absl::Seconds(36));
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(99)), absl::Seconds(30)) << "the others are still to come";
  pace.End(kStart + absl::Seconds(30));
  EXPECT_EQ(pace.done(), 2);
  pace.Begin(kStart + absl::Seconds(30));
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(30)), absl::Seconds(45));
}

TEST(SweepPace, ProblemsOfAnEarlierProcessAreDoneButSayNothingOfTheTime) {
  SweepPace pace(5, 3);
  pace.Begin(kStart);
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(1)), std::nullopt);
  pace.End(kStart + absl::Seconds(10));
  pace.Begin(kStart + absl::Seconds(10));
  EXPECT_EQ(pace.done(), 4);
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(10)), absl::Seconds(10));
  pace.End(kStart + absl::Seconds(20));
  EXPECT_EQ(pace.TimeLeft(kStart + absl::Seconds(50)), absl::ZeroDuration()) << "all are done";
}

}  // namespace
}  // namespace attune::trials
