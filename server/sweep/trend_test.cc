#include "server/sweep/trend.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/sweep/testing/nights.h"

namespace attune::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::Incumbent Served(int number, int day, double median_us, const std::string& variant = "tiles:BLOCK=1") {
  v1::Incumbent incumbent;
  incumbent.set_name(absl::StrCat("incumbents/", number));
  incumbent.set_problem_text("b2.h8.q512.d64.f16");
  incumbent.set_policy(v1::POLICY_HOT);
  incumbent.set_device_id("cuda:0");
  incumbent.set_device_class("an L4");
  incumbent.mutable_trial()->set_device_id("cuda:0");
  incumbent.mutable_trial()->set_device_uuid("GPU-0");
  incumbent.mutable_trial()->mutable_variant()->set_text(variant);
  incumbent.mutable_trial()->mutable_dependencies()->set_driver("580.1");
  *incumbent.mutable_timing() = TimingOf(median_us);
  incumbent.mutable_promote_time()->set_seconds(kFirst + day * kDay);
  return incumbent;
}

// The past, night by night.
class TrendTest : public ::testing::Test {
 protected:
  TrendTest() { history_ = {Served(1, 0, 40)}; }

  // A cycle of the night `day`, after those before it.
  v1::Retiming& Timed(int day, double median_us) {
    v1::Retiming retiming;
    retiming.set_device_id("cuda:0");
    retiming.set_device_uuid("GPU-0");
    retiming.set_variant("tiles:BLOCK=1");
    retiming.set_job(absl::StrCat("operations/", day));
    *retiming.mutable_timing() = TimingOf(median_us);
    retiming.mutable_dependencies()->set_driver("580.1");
    retiming.mutable_finish_time()->set_seconds(kFirst + day * kDay + 3600 + static_cast<int64_t>(retimings_.size()));
    retimings_.insert(retimings_.begin(), retiming);
    return retimings_.front();
  }
  void Night(int day, std::initializer_list<double> cycles) {
    for (const double median_us : cycles) Timed(day, median_us);
  }
  v1::Trend Trend() {
    std::vector<v1::Retiming> in_range;  // as the store lists them
    for (const v1::Retiming& retiming : retimings_) {
      const absl::Time time = absl::FromUnixSeconds(retiming.finish_time().seconds());
      if (time >= terms_.begin && time < terms_.end) in_range.push_back(retiming);
    }
    return TrendOf(history_.front(), history_, in_range, terms_);
  }
  static int DayOf(const google::protobuf::Timestamp& time) {
    return static_cast<int>((time.seconds() - kFirst) / kDay);
  }
  static std::vector<std::string> Changes(const v1::Trend& trend) {
    std::vector<std::string> words;
    for (const auto& change : trend.changes()) {
      words.push_back(absl::StrCat(change.what(), " ", change.from(), " to ", change.to()));
    }
    return words;
  }

  std::vector<v1::Incumbent> history_;  // newest first
  std::vector<v1::Retiming> retimings_;
  TrendTerms terms_;
};

TEST_F(TrendTest, WhatWasNeverTimedAgainSaysSo) { EXPECT_EQ(Trend().state(), v1::Trend::STATE_NOT_TIMED); }

TEST_F(TrendTest, ThePlayOffThatPromotedItSaysNothingOfIt) {
  Timed(-1, 44);
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_NOT_TIMED);
}

TEST_F(TrendTest, WithinTheThresholdIsTheSame) {
  Night(1, {40.7});
  Night(2, {39.3});
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SAME);
  EXPECT_EQ(DayOf(trend.since()), 1);
  EXPECT_EQ(trend.nights(), 2);
  EXPECT_NEAR(trend.change(), -0.0175, 1e-9);
  EXPECT_THAT(trend.changes(), IsEmpty());
}

TEST_F(TrendTest, ARegressionHasItsFirstNightAndWhatChangedThen) {
  Night(1, {40});
  for (int cycle = 0; cycle < 3; ++cycle) Timed(2, 42).mutable_dependencies()->set_driver("590.2");
  for (int cycle = 0; cycle < 3; ++cycle) Timed(3, 42.2).mutable_dependencies()->set_driver("590.2");
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SLOWER);
  EXPECT_EQ(DayOf(trend.since()), 2);
  EXPECT_EQ(trend.nights(), 2);
  EXPECT_NEAR(trend.change(), 0.055, 1e-9);
  EXPECT_EQ(trend.latest_job(), "operations/3");
  EXPECT_THAT(Changes(trend), ElementsAre("driver 580.1 to 590.2"));
}

TEST_F(TrendTest, WhatChangedInANightThatSettledNothingIsNotLost) {
  Night(1, {40});
  v1::Retiming& contended = Timed(2, 47);
  contended.mutable_timing()->set_contended(true);
  contended.mutable_dependencies()->set_driver("590.2");
  for (int cycle = 0; cycle < 3; ++cycle) Timed(3, 42).mutable_dependencies()->set_driver("590.2");
  const v1::Trend trend = Trend();
  EXPECT_EQ(DayOf(trend.since()), 3);
  EXPECT_THAT(Changes(trend), ElementsAre("driver 580.1 to 590.2"));
}

TEST_F(TrendTest, OneSlowCycleIsNoRegression) {
  Night(1, {40});
  Night(2, {43});
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SAME);
  EXPECT_EQ(trend.unsettled_nights(), 1);
}

TEST_F(TrendTest, SlowCyclesOfSeveralNightsConfirmEachOther) {
  Night(1, {40});
  Night(2, {43});
  Night(3, {43});
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
  Night(4, {43});
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SLOWER);
  EXPECT_EQ(DayOf(trend.since()), 2);
  EXPECT_EQ(trend.nights(), 3);
}

TEST_F(TrendTest, ACycleWithAnotherProcessOnTheDeviceConfirmsNothing) {
  Night(1, {40});
  Night(2, {43, 43});
  Timed(2, 43).mutable_timing()->set_contended(true);
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
}

TEST_F(TrendTest, ARegressionThatWentAwayIsNone) {
  Night(1, {42, 42, 42});
  Night(2, {40});
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
}

TEST_F(TrendTest, OneNightBelowTheThresholdDoesNotEndARegressionOfTwo) {
  Night(1, {41, 41, 41});
  Night(2, {41, 41, 41});
  Night(3, {40.7});
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SLOWER);
  EXPECT_EQ(trend.unsettled_nights(), 1);
  EXPECT_NEAR(trend.change(), 0.025, 1e-9);
  Night(4, {40.7});
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
}

TEST_F(TrendTest, NightsBelowTheThresholdBetweenOthersDoNotHideWhenItBegan) {
  Night(1, {40});
  Night(2, {40});
  for (int day = 3; day < 15; ++day) {
    const bool below = day == 7 || day == 8;
    for (int cycle = 0; cycle < (below ? 1 : 3); ++cycle) {
      Timed(day, below ? 40.7 : 41).mutable_dependencies()->set_driver("590.2");
    }
  }
  const v1::Trend trend = Trend();
  EXPECT_EQ(DayOf(trend.since()), 3);
  EXPECT_EQ(trend.nights(), 10);
  EXPECT_THAT(Changes(trend), ElementsAre("driver 580.1 to 590.2"));
}

TEST_F(TrendTest, ASlowNightByChanceBeforeIsNotItsBeginning) {
  Night(1, {40});
  Night(2, {43, 43, 43});
  Night(3, {40});
  Night(4, {42, 42, 42});
  Night(5, {42, 42, 42});
  EXPECT_EQ(DayOf(Trend().since()), 4);
}

TEST_F(TrendTest, ANightThatSettledNothingDoesNotInterruptARegression) {
  Night(1, {42, 42, 42});
  Night(2, {42, 42});
  Timed(2, 42).mutable_timing()->set_contended(true);
  Night(3, {42, 42, 42});
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SLOWER);
  EXPECT_EQ(DayOf(trend.since()), 1);
  EXPECT_EQ(trend.nights(), 2);
}

TEST_F(TrendTest, NothingSettledSoFarIsAmbiguous) {
  Night(1, {43});
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_AMBIGUOUS);
  EXPECT_EQ(trend.unsettled_nights(), 1);
}

// Otherwise a promotion after a driver's update would hide what that cost.
TEST_F(TrendTest, IsAgainstTheFastestThatWasServedNotTheLast) {
  history_.insert(history_.begin(), Served(2, 5, 44, "tiles:BLOCK=2"));
  for (int cycle = 0; cycle < 3; ++cycle) Timed(6, 44).set_variant("tiles:BLOCK=2");
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SLOWER);
  EXPECT_EQ(trend.reference_variant(), "tiles:BLOCK=1");
  EXPECT_NEAR(trend.change(), 0.1, 1e-9);
  EXPECT_THAT(Changes(trend), ElementsAre("variant tiles:BLOCK=1 to tiles:BLOCK=2"));
}

TEST_F(TrendTest, WhatWasRolledBackIsNoReference) {
  history_.front().set_rolled_back(true);
  history_.insert(history_.begin(), Served(2, 5, 44));
  Night(6, {44});
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
}

TEST_F(TrendTest, APinnedOneIsAgainstItsOwnTime) {
  history_.insert(history_.begin(), Served(2, 5, 44));
  history_.front().set_pinned(true);
  Night(6, {44});
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
}

TEST_F(TrendTest, AnotherCardHasMovedItAndIsNoRegression) {
  Night(1, {40});
  for (int cycle = 0; cycle < 3; ++cycle) {
    v1::Retiming& retiming = Timed(2, 44);
    retiming.set_device_id("cuda:1");
    retiming.set_device_uuid("GPU-1");
  }
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_MOVED);
  EXPECT_EQ(trend.change(), 0);
  EXPECT_EQ(trend.latest_device_id(), "cuda:1");
  EXPECT_THAT(Changes(trend), ElementsAre("card GPU-0 to GPU-1"));
}

TEST_F(TrendTest, OfANightWithSeveralVariantsTheServedOneCounts) {
  Timed(1, 40);
  Timed(1, 55).set_variant("tiles:BLOCK=9");
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
}

// A play-off stores what it replaces after what it promotes.
TEST_F(TrendTest, OfTheNightOfAPromotionThePromotedOneCounts) {
  history_.insert(history_.begin(), Served(2, 5, 36, "tiles:BLOCK=2"));
  history_.front().set_job("operations/5");
  history_.insert(history_.begin(), Served(3, 8, 30, "tiles:BLOCK=3"));
  history_.front().set_job("operations/8");
  terms_.begin = absl::FromUnixSeconds(kFirst + 7 * kDay);
  Timed(8, 30).set_variant("tiles:BLOCK=3");
  Timed(8, 36.1).set_variant("tiles:BLOCK=2");
  for (int day = 9; day < 11; ++day) Timed(day, 30).set_variant("tiles:BLOCK=3");
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SAME);
  EXPECT_EQ(trend.nights(), 3) << "the night of the promotion, too";
}

TEST_F(TrendTest, TheRangeOfTimeLeavesTheRestOut) {
  Night(1, {40});
  Night(5, {42, 42, 42});
  terms_.end = absl::FromUnixSeconds(kFirst + 3 * kDay);
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
  terms_.begin = absl::FromUnixSeconds(kFirst + 2 * kDay);
  terms_.end = absl::InfiniteFuture();
  const v1::Trend trend = Trend();
  EXPECT_EQ(trend.state(), v1::Trend::STATE_SLOWER);
  EXPECT_EQ(DayOf(trend.since()), 5);
}

TEST_F(TrendTest, WhatChangedBeforeTheRangeOfTimeIsNoCause) {
  for (int day = 1; day < 9; ++day) {
    for (int cycle = 0; cycle < 3; ++cycle) Timed(day, 42).mutable_dependencies()->set_driver("590.2");
  }
  EXPECT_THAT(Changes(Trend()), ElementsAre("driver 580.1 to 590.2"));
  terms_.begin = absl::FromUnixSeconds(kFirst + 7 * kDay);
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SLOWER);
  EXPECT_THAT(Changes(Trend()), IsEmpty());
}

TEST_F(TrendTest, TheThresholdIsTheCallers) {
  Night(1, {42, 42, 42});
  terms_.regression = 0.06;
  EXPECT_EQ(Trend().state(), v1::Trend::STATE_SAME);
}

TEST_F(TrendTest, ACurveHasTheMedianOfEachSpanWithTheWidestInterval) {
  Night(0, {41, 40, 43});
  Night(10, {50});
  terms_.points = 2;
  const v1::Trend trend = Trend();
  ASSERT_EQ(trend.points_size(), 2);
  EXPECT_EQ(trend.points(0).median_us(), 41);
  EXPECT_NEAR(trend.points(0).low_us(), 40 * 0.998, 1e-9);
  EXPECT_NEAR(trend.points(0).high_us(), 43 * 1.002, 1e-9);
  EXPECT_EQ(trend.points(0).count(), 3);
  EXPECT_EQ(trend.points(1).median_us(), 50);
  terms_.points = 0;
  EXPECT_EQ(Trend().points_size(), 0);
}

}  // namespace
}  // namespace attune::sweep
