#include "server/sweep/sweep_pace.h"

#include <gtest/gtest.h>

namespace attune::sweep {
namespace {

SweepPace Of(std::map<double, int64_t> left, std::vector<SweepPace::AtHand> at_hand = {}) {
  SweepPace pace;
  pace.left = std::move(left);
  pace.at_hand = std::move(at_hand);
  return pace;
}

// To a millisecond; -1 where nothing is said.
int64_t Ms(const SweepPace& pace) {
  const std::optional<absl::Duration> left = pace.TimeLeft();
  return left.has_value()
             ? absl::ToInt64Milliseconds(absl::Trunc(*left + absl::Microseconds(500), absl::Milliseconds(1)))
             : -1;
}

TEST(SweepPace, IsThatOfTheProblemsDone) {
  EXPECT_EQ(Ms(Of({{8, 4}}, {{.work = 8, .since = absl::Seconds(9)}})), -1) << "none is done";
  SweepPace pace = Of({{8, 3}}, {{.work = 8, .since = absl::Seconds(4)}});
  pace.Add(8, absl::Seconds(10));
  EXPECT_EQ(Ms(pace), 36'000);
  pace.Add(8, absl::Seconds(20));
  EXPECT_EQ(Ms(pace), 56'000);
  EXPECT_EQ(Ms(Of({})), 0);
}

TEST(SweepPace, WeighsWhatIsLeftByItsWork) {
  SweepPace pace = Of({{10, 2}, {100, 1}, {1000, 1}});
  pace.Add(10, absl::Seconds(1));
  pace.Add(1000, absl::Seconds(100));
  EXPECT_EQ(Ms(pace), 112'000) << "2 of 1 s, one of 10 s between them, one of 100 s";
}

TEST(SweepPace, SaysNothingOfProblemsFarBeyondThoseDone) {
  SweepPace pace = Of({{1000, 1}});
  pace.Add(10, absl::Seconds(1));
  EXPECT_EQ(Ms(pace), -1) << "anything from 1 to 100 s";
  pace.left = {{40, 1}};
  EXPECT_EQ(Ms(pace), 2'000) << "from 1 to 4 s";
  pace.left = {{2.5, 1}};
  EXPECT_EQ(Ms(pace), 500) << "from 0.25 to 1 s";
}

TEST(SweepPace, IsNeverShorterThanTheProblemAtHandSays) {
  SweepPace pace = Of({}, {{.work = 8, .since = absl::Seconds(9), .eta = absl::Seconds(60)}});
  pace.Add(8, absl::Seconds(10));
  EXPECT_EQ(Ms(pace), 60'000);
  pace.at_hand.front().eta.reset();
  EXPECT_EQ(Ms(pace), 1'000);
  pace.at_hand.front().since = absl::Seconds(11);
  EXPECT_EQ(Ms(pace), -1) << "it takes longer than was foreseen";
}

TEST(SweepPace, TheFirstProblemsOwnTimeSaysSomethingOfTheOthers) {
  const SweepPace pace = Of({{8, 2}}, {{.work = 8, .since = absl::Seconds(4), .eta = absl::Seconds(6)}});
  EXPECT_EQ(Ms(pace), 26'000);
}

TEST(SweepPace, CardsShareWhatIsLeft) {
  SweepPace pace = Of({{8, 4}}, {{.work = 8, .since = absl::Seconds(4)}, {.work = 8}});
  pace.cards = 2;
  pace.Add(8, absl::Seconds(10));
  EXPECT_EQ(Ms(pace), 28'000);
  pace.left.clear();
  pace.at_hand = {{.work = 8}};
  EXPECT_EQ(Ms(pace), 10'000) << "one is one card's";
}

}  // namespace
}  // namespace attune::sweep
