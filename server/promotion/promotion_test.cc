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

IncumbentState IncumbentAt(size_t contestant, bool stale = false) { return {true, contestant, stale, ""}; }

TEST(Promotion, TheBestIsPromotedWhereThereIsNoIncumbent) {
  const Decision decision = Decide({Trial(19, 20, 21), Trial(9, 10, 11)}, IncumbentState(), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 1u);
  EXPECT_THAT(decision.why, HasSubstr("no incumbent"));
}

TEST(Promotion, AChallengerWhoseIntervalLiesBelowReplacesTheIncumbent) {
  const Decision decision = Decide({Trial(19, 20, 21), Trial(9, 10, 11)}, IncumbentAt(0), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 1u);
  EXPECT_THAT(decision.why, HasSubstr("2.000 times"));
}

TEST(Promotion, APinnedIncumbentKeepsItsPlaceWhateverTheOthersTake) {
  IncumbentState standing = IncumbentAt(0);
  standing.pinned = true;
  const Decision decision = Decide({Trial(19, 20, 21), Trial(9, 10, 11)}, standing, 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.why, HasSubstr("it is pinned"));
}

TEST(Promotion, APinnedIncumbentThatIsWrongTodayIsReplaced) {
  IncumbentState standing;
  standing.exists = true;
  standing.absence = "failed: o[3] is 7";
  standing.pinned = true;
  const Decision decision = Decide({Trial(9, 10, 11)}, standing, 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
}

TEST(Promotion, AnIncumbentAloneHadNoChallenger) {
  EXPECT_EQ(Decide({Trial(97000, 97364.97, 98000)}, IncumbentAt(0), 1).why,
            "the incumbent is retained at 97364.97 us [97000.00, 98000.00]: there was no challenger");
}

TEST(Promotion, APinSaysWhetherItIsSlower) {
  const std::vector<v1::Trial> contestants = {Trial(9, 10, 11), Trial(19, 20, 21)};
  EXPECT_EQ(Pin(contestants, IncumbentAt(0), 1).why,
            "pinned at 20.00 us [19.00, 21.00], slower than the incumbent before it at 10.00 us [9.00, 11.00]");
  EXPECT_EQ(Pin(contestants, IncumbentAt(1), 0).why,
            "pinned at 10.00 us [9.00, 11.00], in the place of the incumbent before it at 20.00 us [19.00, 21.00]");
  EXPECT_EQ(Pin(contestants, IncumbentState(), 0).why, "pinned at 10.00 us [9.00, 11.00]");
}

TEST(Promotion, KeepsTheIncumbentInsideATie) {
  const Decision decision = Decide({Trial(19, 20, 21), Trial(18, 19.5, 20)}, IncumbentAt(0), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.ties, ElementsAre(1));
}

TEST(Promotion, TheFastestOfThoseApartFromTheIncumbentIsPromotedAndTiesAreNamed) {
  const Decision decision =
      Decide({Trial(9.5, 10, 11), Trial(19, 20, 21), Trial(10, 10.5, 11), Trial(18, 19, 22)}, IncumbentAt(1), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.ties, ElementsAre(2));
}

TEST(Promotion, AContendedChallengerIsNotPromoted) {
  const Decision decision = Decide({Trial(19, 20, 21), Contended(Trial(9, 10, 11))}, IncumbentAt(0), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.ties, IsEmpty());
}

TEST(Promotion, AContendedIncumbentCannotBeBeaten) {
  const Decision decision = Decide({Contended(Trial(19, 20, 21)), Trial(9, 10, 11)}, IncumbentAt(0, true), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
}

TEST(Promotion, NothingContendedIsPromotedEvenWithoutIncumbent) {
  const Decision decision = Decide({Contended(Trial(9, 10, 11))}, IncumbentState(), 1);
  EXPECT_FALSE(decision.promote);
  EXPECT_FALSE(decision.best.has_value());
  EXPECT_THAT(decision.why, HasSubstr("another process"));
}

TEST(Promotion, WhatIsWrongIsNeverPromoted) {
  const Decision decision = Decide({Wrong(Trial(9, 10, 11)), Trial(19, 20, 21)}, IncumbentState(), 1);
  EXPECT_EQ(decision.best, 1u);
  EXPECT_FALSE(Decide({Wrong(Trial(9, 10, 11))}, IncumbentState(), 1).promote);
}

TEST(Promotion, AStaleIncumbentThatHoldsIsPromotedUnderTodaysDependencies) {
  const Decision decision = Decide({Trial(19, 20, 21), Trial(19, 20, 21)}, IncumbentAt(0, true), 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_EQ(decision.best, 0u);
  EXPECT_THAT(decision.why, HasSubstr("today"));
}

TEST(Promotion, AnIncumbentThatCannotTakePartGivesWayToTheBest) {
  IncumbentState standing;
  standing.exists = true;
  standing.absence = "is gone";
  const Decision decision = Decide({Trial(9, 10, 11)}, standing, 1);
  EXPECT_TRUE(decision.promote);
  EXPECT_THAT(decision.why, HasSubstr("is gone"));
}

TEST(Promotion, ASpeedupBelowTheOneAskedForKeepsTheIncumbent) {
  const std::vector<v1::Trial> contestants = {Trial(99.9, 100, 100.1), Trial(98.9, 99, 99.1)};
  EXPECT_TRUE(Decide(contestants, IncumbentAt(0), 1).promote);
  EXPECT_FALSE(Decide(contestants, IncumbentAt(0), 1.02).promote);
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
