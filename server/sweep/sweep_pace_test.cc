#include "server/sweep/sweep_pace.h"

#include <gtest/gtest.h>

namespace attune::sweep {
namespace {

constexpr absl::Duration kNow = absl::ZeroDuration();

TEST(SweepPace, IsThatOfTheProblemsDone) {
  EXPECT_EQ((SweepPace{5, 1, 0, kNow, {absl::Seconds(9)}}.TimeLeft()), std::nullopt);
  EXPECT_EQ((SweepPace{4, 1, 1, absl::Seconds(10), {kNow}}.TimeLeft()), absl::Seconds(40));
  EXPECT_EQ((SweepPace{4, 1, 1, absl::Seconds(10), {absl::Seconds(4)}}.TimeLeft()), absl::Seconds(36));
  EXPECT_EQ((SweepPace{4, 1, 1, absl::Seconds(10), {absl::Seconds(89)}}.TimeLeft()), absl::Seconds(30))
      << "the others are still to come";
  EXPECT_EQ((SweepPace{3, 1, 2, absl::Seconds(30)}.TimeLeft()), absl::Seconds(45));
  EXPECT_EQ((SweepPace{0, 1, 1, absl::Seconds(10)}.TimeLeft()), absl::ZeroDuration());
}

TEST(SweepPace, CardsShareWhatIsLeft) {
  EXPECT_EQ((SweepPace{6, 2, 1, absl::Seconds(10), {absl::Seconds(4), kNow}}.TimeLeft()), absl::Seconds(28));
  EXPECT_EQ((SweepPace{1, 2, 1, absl::Seconds(10), {kNow}}.TimeLeft()), absl::Seconds(10)) << "one is one card's";
}

}  // namespace
}  // namespace attune::sweep
