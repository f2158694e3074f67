#include "server/search/learning_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "server/search/budget.h"

namespace attune::search {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Field Blank(size_t candidates) {
  Field field;
  field.candidates = candidates;
  return field;
}

v1::Trial Good(double us) {
  v1::Trial trial;
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_timing()->set_median_us(us);
  return trial;
}

// Plans what it is told to, and keeps what it knew then.
class Scripted : public LearningStrategy {
 public:
  struct Step {
    std::vector<size_t> batch;
    std::vector<size_t> ahead = {};
  };
  Scripted(const Field& field, std::deque<Step> steps) : LearningStrategy(field), steps_(std::move(steps)) {}

  // When it last planned.
  mutable std::vector<Told> told;
  mutable std::vector<bool> open;
  mutable size_t pending = 0;
  mutable size_t new_codes = 0;

  size_t most_pending = 0;

 private:
  bool PlansMore(const Situation& situation) const override { return situation.pending < most_pending; }
  Plan MakePlan(const Situation& situation) const override {
    told = situation.told;
    open = situation.open;
    pending = situation.pending;
    new_codes = situation.new_codes;
    if (situation.round >= steps_.size()) return {};
    return {steps_[situation.round].batch, steps_[situation.round].ahead};
  }
  const std::deque<Step> steps_;
};

void ThinkThrough(Strategy& strategy) {
  while (const Strategy::Thought thought = strategy.Think()) thought()();
}

std::vector<size_t> SpeculateAll(Strategy& strategy) {
  std::vector<size_t> all;
  while (const std::optional<size_t> next = strategy.Speculate()) all.push_back(*next);
  return all;
}

TEST(LearningStrategy, WantsTheBatchFirstAndTriesNothingElse) {
  Scripted strategy(Blank(9), {{{5, 3}, {7}}});
  EXPECT_THAT(SpeculateAll(strategy), IsEmpty());
  EXPECT_EQ(strategy.Choose({}).what, Choice::What::kWait);
  ThinkThrough(strategy);
  EXPECT_THAT(SpeculateAll(strategy), ElementsAre(5, 3, 7));
  EXPECT_EQ(strategy.Choose({7}).what, Choice::What::kWait);
  EXPECT_EQ(strategy.Choose({7, 3, 5}).candidate, 5);  // in the batch's order, whatever was ready first
  EXPECT_EQ(strategy.Choose({7, 3}).candidate, 3);
}

TEST(LearningStrategy, PlansAnewOnceTheBatchHasEnded) {
  Scripted strategy(Blank(9), {{{5, 3}}, {{1}}});
  ThinkThrough(strategy);
  SpeculateAll(strategy);
  strategy.Choose({5});
  strategy.Tell(5, Good(20));
  EXPECT_FALSE(strategy.Think());
  strategy.Choose({3});
  v1::Trial wrong;
  wrong.set_verdict(v1::VERDICT_WRONG_RESULT);
  strategy.Tell(3, wrong);
  ThinkThrough(strategy);
  ASSERT_THAT(strategy.told, SizeIs(2));
  EXPECT_EQ(strategy.told[0].second.us, 20);
  EXPECT_FALSE(strategy.told[1].second.ok);
  EXPECT_EQ(SpeculateAll(strategy), std::vector<size_t>{1});
}

// Of {5, 3, 8}, 5 was tried.
void TryTheFirst(Scripted& strategy) {
  strategy.most_pending = 3;
  ThinkThrough(strategy);
  SpeculateAll(strategy);
  strategy.Choose({5});
  strategy.Tell(5, Good(20));
}

TEST(LearningStrategy, PlansMoreWhileTheDeviceWaitsForCode) {
  Scripted strategy(Blank(9), {{{5, 3, 8}}, {{1}, {2}}});
  TryTheFirst(strategy);
  EXPECT_FALSE(strategy.Think());  // it may have code
  EXPECT_EQ(strategy.Choose({}).what, Choice::What::kWait);
  ThinkThrough(strategy);
  EXPECT_THAT(strategy.told, SizeIs(1));
  EXPECT_EQ(strategy.pending, 2);
  EXPECT_FALSE(strategy.open[3]);
  EXPECT_FALSE(strategy.open[8]);
  EXPECT_THAT(SpeculateAll(strategy), ElementsAre(1, 2));
  EXPECT_THAT(strategy.Drop(), IsEmpty());             // 3 and 8 stay wanted
  EXPECT_EQ(strategy.Choose({1, 2, 8}).candidate, 8);  // what was planned first
  EXPECT_EQ(strategy.Choose({1, 2}).candidate, 1);
}

TEST(LearningStrategy, PlansNoMoreUntilItIsToldMore) {
  Scripted strategy(Blank(9), {{{5, 3, 8}}, {{1}}, {{2}}});
  TryTheFirst(strategy);
  strategy.Choose({});
  ThinkThrough(strategy);
  strategy.Choose({});
  EXPECT_FALSE(strategy.Think());
  strategy.Choose({3});
  strategy.Tell(3, Good(20));
  EXPECT_FALSE(strategy.Think());  // the device was not heard to wait since
  strategy.Choose({});
  EXPECT_TRUE(strategy.Think());
}

TEST(LearningStrategy, PlansNoMoreWhileEnoughIsToCome) {
  Scripted strategy(Blank(9), {{{5, 3, 8}}, {{1}}});
  TryTheFirst(strategy);
  strategy.most_pending = 2;  // as many are to come
  strategy.Choose({});
  EXPECT_FALSE(strategy.Think());
}

// How many codes are new to it among {3, 8, 6}, which are pending, once 5 was tried.
size_t NewCodes(const Field& field) {
  Scripted strategy(field, {{{5, 3, 8, 6}}, {{1}}});
  TryTheFirst(strategy);
  strategy.most_pending = 4;
  strategy.Choose({});
  ThinkThrough(strategy);
  EXPECT_EQ(strategy.pending, 3);
  return strategy.new_codes;
}

TEST(LearningStrategy, KnowsHowManyCodesItIsStillToBeToldOf) {
  Field field = Blank(9);
  EXPECT_EQ(NewCodes(field), 3) << "each has its own";
  field.codes = {0, 0, 1, 2, 3, 4, 4, 5, 2};
  EXPECT_EQ(NewCodes(field), 1) << "3 and 8 share one; a trial of the code of 6 was told";
  field.known = {{3, Outcome::Failed()}};
  field.codes = {0, 0, 1, 1, 3, 4, 5, 5, 5};
  Scripted strategy(field, {{{0, 2, 6, 8}}});
  strategy.most_pending = 9;
  ThinkThrough(strategy);
  EXPECT_EQ(strategy.new_codes, 0) << "nothing is pending yet";
  SpeculateAll(strategy);
  strategy.Choose({0});
  strategy.Tell(0, Good(20));
  strategy.Choose({});
  ThinkThrough(strategy);
  EXPECT_EQ(strategy.new_codes, 1) << "that of 6 and 8; the one of 2 is known";
}

TEST(LearningStrategy, AnEmptyPlanWhileSomeAreToComeIsNotYetTheEnd) {
  Scripted strategy(Blank(9), {{{5, 3}}, {}, {{1}}});
  TryTheFirst(strategy);
  strategy.Choose({});
  ThinkThrough(strategy);
  EXPECT_FALSE(strategy.Done());
  EXPECT_FALSE(strategy.Think());  // what there is to come is waited for
  strategy.Choose({3});
  strategy.Tell(3, Good(20));
  ThinkThrough(strategy);
  EXPECT_THAT(strategy.told, SizeIs(2));
  EXPECT_EQ(SpeculateAll(strategy), std::vector<size_t>{1});
}

TEST(LearningStrategy, NothingIsLearnedFromWhatWasLost) {
  Scripted strategy(Blank(3), {{{2}}, {{1}}});
  ThinkThrough(strategy);
  SpeculateAll(strategy);
  strategy.Choose({2});
  v1::Trial lost;
  lost.set_verdict(v1::VERDICT_LOST);
  strategy.Tell(2, lost);
  ThinkThrough(strategy);
  EXPECT_THAT(strategy.told, IsEmpty());
}

TEST(LearningStrategy, DropsWhatIsNotWantedAnyMore) {
  Scripted strategy(Blank(9), {{{5}, {7, 8}}, {{8}, {7}}, {{6}, {7}}});
  ThinkThrough(strategy);
  EXPECT_THAT(SpeculateAll(strategy), ElementsAre(5, 7, 8));
  strategy.Choose({5});
  strategy.Tell(5, Good(20));
  ThinkThrough(strategy);
  EXPECT_THAT(strategy.Drop(), IsEmpty());  // 8 is there already, 7 is wanted still
  strategy.Choose({8});
  strategy.Tell(8, Good(20));
  ThinkThrough(strategy);
  EXPECT_THAT(strategy.Drop(), ElementsAre(7));  // nothing keeps 6 from a place
  EXPECT_THAT(SpeculateAll(strategy), ElementsAre(6, 7));
}

TEST(LearningStrategy, AnEmptyPlanIsTheEnd) {
  Scripted strategy(Blank(9), {{{5}, {6}}});
  ThinkThrough(strategy);
  SpeculateAll(strategy);
  strategy.Choose({5});
  strategy.Tell(5, Good(20));
  ThinkThrough(strategy);
  EXPECT_TRUE(strategy.Done());
  EXPECT_EQ(strategy.Choose({6}).what, Choice::What::kDone);
}

TEST(LearningStrategy, WhatAnotherJobHasTriedMeanwhileIsNotTriedAgain) {
  Scripted strategy(Blank(9), {{{5, 6}}, {{1}}});
  const Strategy::Thought thought = strategy.Think();
  const std::function<void()> adopt = thought();
  strategy.Tell(5, Good(20));
  adopt();
  EXPECT_EQ(SpeculateAll(strategy), std::vector<size_t>{6});
  strategy.Tell(6, Good(30));  // not chosen: the store had it
  ThinkThrough(strategy);
  EXPECT_EQ(SpeculateAll(strategy), std::vector<size_t>{1});
}

TEST(LearningStrategy, BeginsWithWhatIsKnownAndItCostsNoBudget) {
  Field field = Blank(9);
  field.known = {{4, Outcome::Timed(30)}, {2, Outcome::Failed()}};
  auto scripted = std::make_unique<Scripted>(field, std::deque<Scripted::Step>{{{5}}, {{6}}});
  const Scripted* inside = scripted.get();
  BudgetedStrategy strategy(std::move(scripted), {.max_trials = 1}, [] { return absl::ZeroDuration(); });
  EXPECT_THAT(strategy.Known(), ElementsAre(4, 2));
  EXPECT_EQ(strategy.Total(), 3);
  ThinkThrough(strategy);
  EXPECT_THAT(inside->told, SizeIs(2));
  EXPECT_EQ(SpeculateAll(strategy), std::vector<size_t>{5});
  EXPECT_EQ(strategy.Choose({5}).what, Choice::What::kTry);
  strategy.Tell(5, Good(20));
  EXPECT_EQ(strategy.Choose({}).what, Choice::What::kDone);
}

// A job that goes on after a kill: what it had tried is known, and counts.
TEST(LearningStrategy, WhatTheJobHasSpentBeforeCounts) {
  Field field = Blank(9);
  field.known = {{4, Outcome::Timed(30)}, {2, Outcome::Failed()}};
  BudgetedStrategy strategy(std::make_unique<Scripted>(field, std::deque<Scripted::Step>{{{5, 6}}}),
                            {.max_trials = 3, .spent = 2}, [] { return absl::ZeroDuration(); });
  EXPECT_EQ(strategy.Total(), 3);
  ThinkThrough(strategy);
  EXPECT_EQ(SpeculateAll(strategy), std::vector<size_t>{5});
}

}  // namespace
}  // namespace attune::search
