#include "server/promotion/promotion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace attune::promotion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Trial Trial(double low, double median, double high) {
  static int count = 0;
  v1::Trial trial;
  trial.set_name(absl::StrCat("trials/", ++count));
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_timing()->set_low_us(low);
  trial.mutable_timing()->set_median_us(median);
  trial.mutable_timing()->set_high_us(high);
  return trial;
}

v1::Trial Contended(v1::Trial trial) {
  trial.mutable_timing()->set_contended(true);
  return trial;
}

v1::Trial Wrong(v1::Trial trial) {
  trial.set_verdict(v1::VERDICT_WRONG_RESULT);
  return trial;
}

// Each contestant's median in nine rounds of three cycles; where its interval has a width, in one of the two ends of
// it in the second and the third, so that it is unclear how it compares.
measure::PairedRounds RoundsOf(const std::vector<v1::Trial>& contestants) {
  measure::PairedRounds rounds(contestants.size());
  for (int cycle = 0; cycle < 3; ++cycle) {
    measure::PairedRounds::Cycle times;
    for (const v1::Trial& contestant : contestants) {
      const v1::Timing& timing = contestant.timing();
      times.emplace_back(9, cycle == 0 ? timing.median_us() : cycle == 1 ? timing.low_us() : timing.high_us());
    }
    rounds.Add(std::move(times));
  }
  return rounds;
}

Decision DecideOn(const std::vector<v1::Trial>& contestants, const IncumbentState& standing, double least_speedup) {
  return Decide(contestants, RoundsOf(contestants), standing, least_speedup);
}

IncumbentState IncumbentAt(size_t contestant, bool stale = false) { return {true, contestant, stale, ""}; }

TEST(Promotion, TheBestIsPromotedWhereThereIsNoIncumbent) {
  const Decision decision = DecideOn({Trial(19, 20, 21), Trial(9, 10, 11)}, IncumbentState(), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 1u);
  EXPECT_THAT(decision.why, HasSubstr("no incumbent"));
}

TEST(Promotion, AChallengerThatIsFasterReplacesTheIncumbent) {
  const Decision decision = DecideOn({Trial(20, 20, 20), Trial(10, 10, 10)}, IncumbentAt(0), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 1u);
  EXPECT_THAT(decision.why, HasSubstr("2.000 times"));
}

TEST(Promotion, APinnedIncumbentKeepsItsPlaceWhateverTheOthersTake) {
  IncumbentState standing = IncumbentAt(0);
  standing.pinned = true;
  const Decision decision = DecideOn({Trial(19, 20, 21), Trial(9, 10, 11)}, standing, 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.why, HasSubstr("it is pinned"));
}

TEST(Promotion, APinnedIncumbentThatIsWrongTodayIsReplaced) {
  IncumbentState standing;
  standing.exists = true;
  standing.absence = "failed: o[3] is 7";
  standing.pinned = true;
  const Decision decision = DecideOn({Trial(9, 10, 11)}, standing, 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
}

TEST(Promotion, AnIncumbentAloneHadNoChallenger) {
  EXPECT_EQ(DecideOn({Trial(97000, 97364.97, 98000)}, IncumbentAt(0), 1).why,
            "the incumbent is retained at 97364.97 us [97000.00, 98000.00]: there was no challenger");
}

TEST(Promotion, APinSaysWhetherItIsSlower) {
  const std::vector<v1::Trial> contestants = {Trial(9, 10, 11), Trial(19, 20, 21)};
  EXPECT_EQ(Pin(contestants, RoundsOf(contestants), IncumbentAt(0), 1).why,
            "pinned at 20.00 us [19.00, 21.00], slower than the incumbent before it at 10.00 us [9.00, 11.00]");
  EXPECT_EQ(Pin(contestants, RoundsOf(contestants), IncumbentAt(1), 0).why,
            "pinned at 10.00 us [9.00, 11.00], in the place of the incumbent before it at 20.00 us [19.00, 21.00]");
  EXPECT_EQ(Pin(contestants, RoundsOf(contestants), IncumbentState(), 0).why, "pinned at 10.00 us [9.00, 11.00]");
}

TEST(Promotion, KeepsTheIncumbentInsideATie) {
  const Decision decision = DecideOn({Trial(100, 100, 100), Trial(99.7, 99.8, 99.7)}, IncumbentAt(0), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.ties, ElementsAre(1));
}

TEST(Promotion, WhatIsUnclearIsNeitherPromotedNorATie) {
  // Twice as fast in one cycle, as slow in another.
  const Decision decision = DecideOn({Trial(100, 100, 100), Trial(50, 90, 100)}, IncumbentAt(0), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.ties, IsEmpty());
  EXPECT_THAT(decision.why, HasSubstr("of 1 it is unclear"));
}

TEST(Promotion, TheFastestOfThoseThatAreFasterIsPromotedAndTiesAreNamed) {
  const Decision decision = DecideOn(
      {Trial(10, 10, 10), Trial(20, 20, 20), Trial(10.02, 10.02, 10.02), Trial(18, 19, 22)}, IncumbentAt(1), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.ties, ElementsAre(2));
}

TEST(Promotion, AContendedChallengerIsNotPromoted) {
  const Decision decision = DecideOn({Trial(19, 20, 21), Contended(Trial(9, 10, 11))}, IncumbentAt(0), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.ties, IsEmpty());
}

TEST(Promotion, AContendedIncumbentCannotBeBeaten) {
  const Decision decision = DecideOn({Contended(Trial(19, 20, 21)), Trial(9, 10, 11)}, IncumbentAt(0, true), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
}

TEST(Promotion, NothingContendedIsPromotedEvenWithoutIncumbent) {
  const Decision decision = DecideOn({Contended(Trial(9, 10, 11))}, IncumbentState(), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_FALSE(decision.best.has_value());
  EXPECT_THAT(decision.why, HasSubstr("another process"));
}

TEST(Promotion, WhatIsWrongIsNeverPromoted) {
  const Decision decision = DecideOn({Wrong(Trial(9, 10, 11)), Trial(19, 20, 21)}, IncumbentState(), 1);
  EXPECT_EQ(decision.best, 1u);
  EXPECT_FALSE(DecideOn({Wrong(Trial(9, 10, 11))}, IncumbentState(), 1).promote);
}

TEST(Promotion, AStaleIncumbentThatHoldsIsPromotedUnderTodaysDependencies) {
  const Decision decision = DecideOn({Trial(19, 20, 21), Trial(19, 20, 21)}, IncumbentAt(0, true), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.why, HasSubstr("today"));
}

TEST(Promotion, AnIncumbentThatCannotTakePartGivesWayToTheBest) {
  IncumbentState standing;
  standing.exists = true;
  standing.absence = "is gone";
  const Decision decision = DecideOn({Trial(9, 10, 11)}, standing, 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_THAT(decision.why, HasSubstr("is gone"));
}

TEST(Promotion, ASpeedupBelowTheOneAskedForKeepsTheIncumbent) {
  const std::vector<v1::Trial> contestants = {Trial(99.9, 100, 100.1), Trial(98.9, 99, 99.1)};
  EXPECT_TRUE(DecideOn(contestants, IncumbentAt(0), 1).promote);
  EXPECT_FALSE(DecideOn(contestants, IncumbentAt(0), 1.02).promote);
}

TEST(Contestants, AreTheBestWhoseIntervalsComeNearTheLeader) {
  const std::map<size_t, v1::Trial> trials = {{0, Trial(30, 31, 32)},
                                              {1, Trial(10.5, 11, 12)},
                                              {2, Trial(9, 10, 10)},
                                              {3, Wrong(Trial(1, 1, 1))},
                                              {4, Trial(11.1, 11.5, 12)}};
  EXPECT_THAT(PickContestants(trials, 6, std::nullopt, 1.10), ElementsAre(2, 1));
  EXPECT_THAT(PickContestants(trials, 1, std::nullopt, 1.10), ElementsAre(2));
}

TEST(Contestants, IncludeTheIncumbentHoweverSlow) {
  const std::map<size_t, v1::Trial> trials = {{0, Trial(30, 31, 32)}, {1, Trial(9, 10, 11)}, {2, Trial(9, 10, 11)}};
  EXPECT_THAT(PickContestants(trials, 1, 0, 1.10), ElementsAre(1, 0));
}

TEST(Contestants, ShareNoCodeAndTheIncumbentGoesBeforeItsDuplicate) {
  std::map<size_t, v1::Trial> trials = {{0, Trial(9, 10, 11)}, {1, Trial(9, 10, 11)}, {2, Trial(9, 10, 11)}};
  trials[1].set_identical_to(trials[0].name());
  trials[2].set_identical_to(trials[0].name());
  EXPECT_THAT(PickContestants(trials, 6, std::nullopt, 1.10), ElementsAre(0));
  EXPECT_THAT(PickContestants(trials, 6, 1, 1.10), ElementsAre(1));
}

}  // namespace
}  // namespace attune::promotion
