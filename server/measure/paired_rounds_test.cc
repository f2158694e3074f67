#include "server/measure/paired_rounds.h"

#include <functional>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/measure/cycles.h"

namespace attune::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Nine rounds of each contestant's time.
PairedRounds::Cycle CycleOf(const std::vector<double>& us) {
  PairedRounds::Cycle cycle;
  for (double time : us) cycle.push_back(std::vector<double>(9, time));
  return cycle;
}

PairedRounds Played(const std::vector<std::vector<double>>& cycles) {
  PairedRounds rounds(cycles.front().size());
  for (const std::vector<double>& us : cycles) rounds.Add(CycleOf(us));
  return rounds;
}

TEST(PairedRounds, AreFasterFromHalfAPercentOn) {
  EXPECT_EQ(Played({{100, 98}, {100, 98.1}, {100, 97.9}}).Of(1, 0).answer, Answer::kFaster);
  EXPECT_EQ(Played({{100, 98}, {100, 98.1}, {100, 97.9}}).Of(0, 1).answer, Answer::kSlower);
  EXPECT_EQ(Played({{100, 99.6}, {100, 99.6}, {100, 99.6}}).Of(1, 0).answer, Answer::kSame);
}

TEST(PairedRounds, AreTheSameInsideOnePercentAlone) {
  EXPECT_EQ(Played({{100, 100.1}, {100, 99.9}, {100, 100}}).Of(1, 0).answer, Answer::kSame);
  EXPECT_EQ(Played({{100, 101}, {100, 99}, {100, 100}}).Of(1, 0).answer, Answer::kUnclear);
}

TEST(PairedRounds, NeedThreeCycles) {
  EXPECT_EQ(Played({{100, 50}, {100, 50}}).Of(1, 0).answer, Answer::kUnclear);
  EXPECT_EQ(Played({{100, 50}, {100, 50}, {100, 50}}).Of(1, 0).answer, Answer::kFaster);
}

TEST(PairedRounds, ACycleOfTwoRoundsSaysNothing) {
  PairedRounds rounds(2);
  for (int cycle = 0; cycle < 3; ++cycle) rounds.Add({{100, 100, cycle == 2 ? 0.0 : 100.0}, {50, 50, 50}});
  EXPECT_EQ(rounds.Of(1, 0).answer, Answer::kUnclear);
  rounds.Add({{100, 100, 100}, {50, 50, 50}});
  EXPECT_EQ(rounds.Of(1, 0).answer, Answer::kFaster);
}

TEST(PairedRounds, CompareWithinARound) {
  // The device slows down by a tenth; 2 % are seen all the same, which the two medians' intervals do not tell.
  PairedRounds rounds(2);
  for (int cycle = 0; cycle < 3; ++cycle) {
    PairedRounds::Cycle drifting(2);
    for (int round = 0; round < 9; ++round) {
      const double device = 1 + 0.004 * (9 * cycle + round);
      drifting[0].push_back(100 * device);
      drifting[1].push_back(98 * device);
    }
    rounds.Add(drifting);
  }
  EXPECT_NEAR(rounds.Of(1, 0).middle, 100.0 / 98 - 1, 1e-9);
  EXPECT_EQ(rounds.Of(1, 0).answer, Answer::kFaster);
  EXPECT_LT(rounds.TimeOf(1).low, rounds.TimeOf(0).high);
  EXPECT_GT(rounds.TimeOf(1).high, rounds.TimeOf(0).low);
}

TEST(PairedRounds, CyclesThatDisagreeAreUnclear) {
  EXPECT_EQ(Played({{100, 95}, {100, 99}, {100, 97}}).Of(1, 0).answer, Answer::kUnclear);
}

TEST(PairedRounds, CyclesThatAgreeByChanceAreNoSurerThanTheirRounds) {
  PairedRounds rounds(2);
  for (int cycle = 0; cycle < 3; ++cycle) {
    rounds.Add({std::vector<double>(9, 100), {98, 90, 106, 92, 98, 104, 88, 98, 108}});
  }
  EXPECT_EQ(rounds.Of(1, 0).answer, Answer::kUnclear);
}

TEST(PairedRounds, CyclesThatAgreeByChanceAreNoSurerThanThoseOfOthers) {
  EXPECT_EQ(Played({{100, 98.5}, {100, 98.45}, {100, 98.55}}).Of(1, 0).answer, Answer::kFaster);
  EXPECT_EQ(Played({{100, 98.5, 104}, {100, 98.45, 96}, {100, 98.55, 100}}).Of(1, 0).answer, Answer::kUnclear);
}

TEST(PairedRounds, AnErraticContestantLeavesTheOthersAnswersClear) {
  const PairedRounds rounds = Played({{100, 98, 98.1, 90}, {100, 97.9, 98, 130}, {100, 98.1, 98.05, 100}});
  EXPECT_EQ(rounds.Of(1, 0).answer, Answer::kFaster);
  EXPECT_EQ(rounds.Of(2, 1).answer, Answer::kSame);
  EXPECT_EQ(rounds.Of(3, 0).answer, Answer::kUnclear);
}

TEST(PairedRounds, TheLastLookNeedsLess) {
  PairedRounds rounds = Played({{100, 98}, {100, 98.5}, {100, 97.5}});
  EXPECT_EQ(rounds.Of(1, 0).answer, Answer::kUnclear);
  const double low = rounds.Of(1, 0).low;
  rounds.Close();
  EXPECT_EQ(rounds.Of(1, 0).answer, Answer::kFaster);
  EXPECT_GT(rounds.Of(1, 0).low, low);
}

TEST(PairedRounds, OfSeveralChallengersEachNeedsMoreAtTheLastLook) {
  PairedRounds one = Played({{100, 98}, {100, 98.65}, {100, 97.35}});
  PairedRounds two = Played({{100, 98, 98}, {100, 98.65, 98.65}, {100, 97.35, 97.35}});
  one.Close();
  two.Close();
  EXPECT_EQ(one.Of(1, 0).answer, Answer::kFaster);
  EXPECT_EQ(two.Of(1, 0).answer, Answer::kUnclear);
}

TEST(PairedRounds, ATimeIsThatOfItsCycles) {
  const PairedRounds rounds = Played({{100, 98}, {100, 99}, {100, 97}});
  EXPECT_EQ(rounds.TimeOf(0).median, 100);
  EXPECT_EQ(rounds.TimeOf(0).high, 100);
  EXPECT_NEAR(rounds.TimeOf(1).median, 98, 0.01);
  EXPECT_LT(rounds.TimeOf(1).low, 97);
  EXPECT_GT(rounds.TimeOf(1).high, 99);
}

TEST(PairedRounds, TheFastestLosesToNoOther) {
  EXPECT_EQ(Played({{100, 98, 99}, {110, 107.8, 108.9}, {105, 103, 104}}).Fastest({0, 1, 2}), 1u);
}

TEST(PairedRounds, WhoseAnswerIsClearTakesNoPartAnyMore) {
  const PairedRounds rounds = Played({{100, 90, 99}, {100, 90, 97}, {100, 90, 95}});
  EXPECT_THAT(rounds.Next(0), ElementsAre(2, 0));
  EXPECT_THAT(Played({{100, 90}, {100, 90}}).Next(0), ElementsAre(0, 1));
  EXPECT_THAT(Played({{100, 90}, {100, 90}, {100, 90}}).Next(0), IsEmpty());
}

TEST(PairedRounds, WithoutIncumbentTheFastestIsComparedWithTheOthers) {
  const PairedRounds rounds = Played({{100, 90, 91}, {100, 90, 89}, {100, 90, 93}});
  EXPECT_THAT(rounds.Next(std::nullopt), ElementsAre(2, 1));
}

class RunCyclesTest : public ::testing::Test {
 protected:
  // The times of cycle `number`.
  void Run(std::function<std::vector<double>(int number)> us, bool late = false) {
    const auto run = [&](const std::vector<size_t>& who) -> absl::StatusOr<std::optional<PairedRounds::Cycle>> {
      takers_.push_back(who.size());
      return CycleOf(us(rounds_.cycles()));
    };
    EXPECT_TRUE(RunCycles(
                    0, run, [late] { return late; }, rounds_)
                    .ok());
  }

  PairedRounds rounds_{2};
  std::vector<size_t> takers_;
};

TEST_F(RunCyclesTest, EndsAfterThreeWhenAllIsClear) {
  Run([](int) { return std::vector<double>{100, 90}; });
  EXPECT_EQ(rounds_.cycles(), 3);
}

TEST_F(RunCyclesTest, EndsAfterTenWhenNothingIs) {
  Run([](int number) { return std::vector<double>{100, number % 2 == 0 ? 97.0 : 103.0}; });
  EXPECT_EQ(rounds_.cycles(), 10);
  EXPECT_EQ(rounds_.Of(1, 0).answer, Answer::kUnclear);
}

TEST_F(RunCyclesTest, HasThreeHoweverLateItIs) {
  Run([](int number) { return std::vector<double>{100, number % 2 == 0 ? 97.0 : 103.0}; }, /*late=*/true);
  EXPECT_EQ(rounds_.cycles(), 3);
}

TEST_F(RunCyclesTest, EndsWhenSomebodyFails) {
  EXPECT_TRUE(
      RunCycles(
          0,
          [](const std::vector<size_t>&) -> absl::StatusOr<std::optional<PairedRounds::Cycle>> { return std::nullopt; },
          [] { return false; }, rounds_)
          .ok());
  EXPECT_EQ(rounds_.cycles(), 0);
}

}  // namespace
}  // namespace attune::measure
