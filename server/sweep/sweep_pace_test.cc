#include "server/sweep/sweep_pace.h"

#include <gtest/gtest.h>

namespace attune::sweep {
namespace {

const absl::Duration kStart = absl::Hours(1);

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
}  // namespace attune::sweep
