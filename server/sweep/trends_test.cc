#include "server/sweep/trends.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/store/testing/fake_store.h"
#include "server/sweep/testing/nights.h"

namespace attune::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Comparisons = v1::CompareTimesResponse;

constexpr char kSmall[] = "b1.h1.q128.d64.f16";
constexpr char kLarge[] = "b2.h8.q512.d64.f16";
// A store with what was served and timed on two classes, a card of each.
class TrendsTest : public ::testing::Test {
 protected:
  TrendsTest() {
    for (const char* alias : {"l4", "h200"}) {
      v1::Device& device = host_.devices.emplace_back();
      device.set_id(absl::StrCat("cuda:", host_.devices.size() - 1));
      device.set_class_alias(alias);
      device.set_fingerprint(absl::StrCat("class of ", alias));
    }
  }

  v1::Trial Tried(const std::string& problem, int device, double median_us, const std::string& family = "tiles") {
    v1::Trial trial;
    *trial.mutable_problem() = ToProto(*ParseProblem(problem));
    trial.set_problem_text(problem);
    trial.set_device_id(host_.devices[device].id());
    trial.mutable_variant()->set_family(family);
    trial.mutable_variant()->set_text(absl::StrCat(family, ":BLOCK=1"));
    trial.set_policy(v1::POLICY_HOT);
    trial.set_verdict(v1::VERDICT_OK);
    *trial.mutable_timing() = TimingOf(median_us);
    trial.mutable_dependencies()->set_device_fingerprint(host_.devices[device].fingerprint());
    trial.mutable_dependencies()->set_driver("580.1");
    trial.set_name(store_.AppendTrial(trial, {}).value());
    return trial;
  }
  void Serve(const std::string& problem, int device, double median_us, int day = 0) {
    v1::Incumbent incumbent;
    *incumbent.mutable_trial() = Tried(problem, device, median_us);
    *incumbent.mutable_timing() = TimingOf(median_us);
    incumbent.mutable_promote_time()->set_seconds(kFirst + day * kDay);
    ASSERT_TRUE(store_.Promote(incumbent, "", {}).ok());
  }
  // Three cycles of a night.
  void Timed(const std::string& problem, int device, int day, double median_us, const std::string& driver = "580.1",
             bool contended = false, const std::string& variant = "tiles:BLOCK=1") {
    for (int cycle = 0; cycle < 3; ++cycle) {
      v1::Retiming retiming;
      retiming.set_problem_text(problem);
      retiming.set_device_id(host_.devices[device].id());
      retiming.set_policy(v1::POLICY_HOT);
      retiming.set_variant(variant);
      *retiming.mutable_timing() = TimingOf(median_us * (1 + (cycle - 1) * 0.001));
      retiming.mutable_dependencies()->set_device_fingerprint(host_.devices[device].fingerprint());
      retiming.mutable_dependencies()->set_driver(driver);
      retiming.mutable_timing()->set_contended(contended);
      retiming.set_job(absl::StrCat("operations/", day));
      retiming.mutable_finish_time()->set_seconds(kFirst + day * kDay + cycle);
      ASSERT_TRUE(store_.AppendRetiming(retiming, {}).ok());
    }
  }

  // "b1.h1.q128.d64.f16 l4 STATE_SLOWER".
  std::vector<std::string> Trends(int page_size = 50) {
    const auto page = ListTrends(trends_, page_size, store_, host_, [this] { return stopped_; });
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> lines;
    if (!page.ok()) return lines;
    for (const v1::Trend& trend : page->items) {
      lines.push_back(absl::StrCat(trend.problem_text(), " ", trend.class_alias(), " ",
                                   v1::Trend::State_Name(trend.state()).substr(sizeof("STATE_") - 1)));
    }
    trends_.set_page_token(page->next_page_token);
    return lines;
  }
  // "b1.h1.q128.d64.f16 SLOWER 40 to 42".
  std::vector<std::string> Compared() {
    const auto response = CompareTimes(comparison_, store_, host_, [this] { return stopped_; });
    EXPECT_TRUE(response.ok()) << response.status();
    std::vector<std::string> lines;
    if (!response.ok()) return lines;
    for (const auto& row : response->rows()) {
      lines.push_back(absl::StrCat(row.problem(), " ",
                                   Comparisons::Comparison_Name(row.comparison()).substr(sizeof("COMPARISON_") - 1),
                                   " ", row.from().timing().median_us(), " to ", row.to().timing().median_us()));
    }
    geometric_mean_ = response->geometric_mean();
    return lines;
  }
  std::string Refused() {
    const absl::Status status = CompareTimes(comparison_, store_, host_, [] { return false; }).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  store::FakeStore store_;
  catalog::Host host_;
  v1::ListTrendsRequest trends_;
  v1::CompareTimesRequest comparison_ = [] {
    v1::CompareTimesRequest request;
    request.set_policy(v1::POLICY_HOT);
    return request;
  }();
  bool stopped_ = false;
  double geometric_mean_ = 0;
};

TEST_F(TrendsTest, AreOfWhatIsServedClassByClass) {
  Serve(kSmall, 0, 40);
  Serve(kLarge, 0, 90);
  Serve(kLarge, 1, 30);
  Timed(kSmall, 0, 1, 42);
  Timed(kLarge, 0, 1, 90);
  EXPECT_THAT(Trends(), ElementsAre("b2.h8.q512.d64.f16 h200 NOT_TIMED", "b2.h8.q512.d64.f16 l4 SAME",
                                    "b1.h1.q128.d64.f16 l4 SLOWER"));
}

TEST_F(TrendsTest, AreFilteredAndPaged) {
  Serve(kSmall, 0, 40);
  Serve(kLarge, 0, 90);
  Timed(kSmall, 0, 1, 42);
  trends_.add_states(v1::Trend::STATE_SLOWER);
  EXPECT_THAT(Trends(1), IsEmpty()) << "a page of one that is not slower";
  EXPECT_THAT(Trends(1), ElementsAre("b1.h1.q128.d64.f16 l4 SLOWER"));
  EXPECT_EQ(trends_.page_token(), "");
  trends_.Clear();
  trends_.set_device_id("h200");
  EXPECT_THAT(Trends(), IsEmpty());
  trends_.set_device_id("l4");
  trends_.set_problem(kLarge);
  EXPECT_THAT(Trends(), ElementsAre("b2.h8.q512.d64.f16 l4 NOT_TIMED"));
}

TEST_F(TrendsTest, AsOfAnEarlierTimeLackWhatWasServedLater) {
  Serve(kSmall, 0, 40);
  Serve(kLarge, 0, 90, 5);
  trends_.mutable_end_time()->set_seconds(kFirst + kDay);
  EXPECT_THAT(Trends(), ElementsAre("b1.h1.q128.d64.f16 l4 NOT_TIMED"));
  trends_.mutable_end_time()->set_seconds(kFirst - 1);
  EXPECT_THAT(Trends(), IsEmpty());
}

TEST_F(TrendsTest, LeaveOutTheTimesBeyondTheRange) {
  Serve(kSmall, 0, 40);
  Timed(kSmall, 0, 1, 40);
  Timed(kSmall, 0, 5, 42);
  trends_.mutable_end_time()->set_seconds(kFirst + 3 * kDay);
  EXPECT_THAT(Trends(), ElementsAre("b1.h1.q128.d64.f16 l4 SAME"));
  trends_.clear_end_time();
  trends_.mutable_start_time()->set_seconds(kFirst + 6 * kDay);
  EXPECT_THAT(Trends(), ElementsAre("b1.h1.q128.d64.f16 l4 NOT_TIMED"));
}

TEST_F(TrendsTest, RefuseARangeOrAnAmountThatIsNone) {
  trends_.set_points(401);
  EXPECT_THAT(ListTrends(trends_, 50, store_, host_, [] { return false; }).status().message(),
              HasSubstr("points is 401; allowed: 0 to 400"));
  trends_.set_points(0);
  trends_.mutable_start_time()->set_seconds(5);
  trends_.mutable_end_time()->set_seconds(4);
  EXPECT_THAT(ListTrends(trends_, 50, store_, host_, [] { return false; }).status().message(),
              HasSubstr("later than end_time"));
}

TEST_F(TrendsTest, EndWhenNobodyWaits) {
  Serve(kSmall, 0, 40);
  stopped_ = true;
  EXPECT_TRUE(absl::IsCancelled(ListTrends(trends_, 50, store_, host_, [] { return true; }).status()));
  EXPECT_TRUE(absl::IsCancelled(CompareTimes(comparison_, store_, host_, [] { return true; }).status()));
}

TEST_F(TrendsTest, TwoDatesAreComparedByTheMedianOfTheirLastNights) {
  Serve(kSmall, 0, 39);
  Serve(kLarge, 0, 89);
  Timed(kSmall, 0, 1, 40);
  Timed(kSmall, 0, 9, 44);
  Timed(kLarge, 0, 1, 90);
  Timed(kLarge, 0, 9, 90.5);
  comparison_.mutable_from()->mutable_end_time()->set_seconds(kFirst + 2 * kDay);
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 SLOWER 40 to 44", "b2.h8.q512.d64.f16 SAME 90 to 90.5"));
  EXPECT_NEAR(geometric_mean_, std::sqrt(40 / 44.0 * 90 / 90.5), 1e-9);
}

TEST_F(TrendsTest, ANightWithAnotherProcessOnTheDeviceIsPassedOver) {
  Serve(kSmall, 0, 40);
  Timed(kSmall, 0, 1, 40);
  Timed(kSmall, 0, 2, 60, "580.1", true);
  comparison_.mutable_from()->mutable_end_time()->set_seconds(kFirst + 2 * kDay - 1);
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 SAME 40 to 40"));
}

// A play-off stores what it replaces after what it promotes.
TEST_F(TrendsTest, WhatWasPromotedCountsFromThenOnAndWhatWasReplacedNoMore) {
  Serve(kSmall, 0, 40);
  Timed(kSmall, 0, 1, 40);
  v1::Incumbent faster;
  v1::Trial trial = Tried(kSmall, 0, 30);
  trial.mutable_variant()->set_text("tiles:BLOCK=2");
  trial.set_name(store_.AppendTrial(trial, {}).value());
  *faster.mutable_trial() = trial;
  *faster.mutable_timing() = TimingOf(30);
  faster.mutable_promote_time()->set_seconds(kFirst + 2 * kDay + 9);
  Timed(kSmall, 0, 2, 30, "580.1", false, "tiles:BLOCK=2");
  Timed(kSmall, 0, 2, 41);
  const auto served = store_.GetIncumbent(kSmall, "class of l4", v1::POLICY_HOT);
  ASSERT_TRUE(store_.Promote(faster, served->name(), {}).ok());
  comparison_.mutable_from()->mutable_end_time()->set_seconds(kFirst + 2 * kDay - 1);
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 FASTER 40 to 30"));
  ASSERT_TRUE(store_.RollBack(kSmall, "class of l4", v1::POLICY_HOT, "wrong", "").ok());
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 SLOWER 40 to 41")) << "what is served again";
}

TEST_F(TrendsTest, CardsOfAClassAreComparedOnlyWhereTheyAreNamed) {
  v1::Device& sister = host_.devices.emplace_back(host_.devices[0]);
  sister.set_id("cuda:2");
  Serve(kSmall, 0, 40);
  Timed(kSmall, 0, 1, 40);
  Timed(kSmall, 2, 2, 44);
  comparison_.mutable_from()->mutable_end_time()->set_seconds(kFirst + 2 * kDay - 1);
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 UNCLEAR 40 to 44"));
  comparison_.clear_from();
  comparison_.mutable_from()->set_device_id("cuda:0");
  comparison_.mutable_to()->set_device_id("cuda:2");
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 SLOWER 40 to 44"));
}

TEST_F(TrendsTest, ClassesAreComparedWithWhatTheyServeWhereNothingWasTimedSince) {
  Serve(kSmall, 0, 40);
  Serve(kSmall, 1, 10);
  Serve(kLarge, 0, 90);
  comparison_.mutable_from()->set_device_id("l4");
  comparison_.mutable_to()->set_device_id("h200");
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 FASTER 40 to 10", "b2.h8.q512.d64.f16 ONLY_FROM 90 to 0"));
}

TEST_F(TrendsTest, DriversAreComparedByTheLastNightOfEach) {
  Serve(kSmall, 0, 40);
  Timed(kSmall, 0, 1, 40, "580.1");
  Timed(kSmall, 0, 2, 41.2, "590.2");
  Timed(kSmall, 0, 3, 43, "590.2");
  Timed(kSmall, 0, 4, 40.1, "580.1");
  comparison_.mutable_from()->set_driver("580.1");
  comparison_.mutable_to()->set_driver("590.2");
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 SLOWER 40.1 to 43"));
}

TEST_F(TrendsTest, FamiliesAreComparedByTheirFastestTrials) {
  Serve(kSmall, 0, 40);
  Tried(kSmall, 0, 80, "simt");
  Tried(kSmall, 0, 70, "simt");
  comparison_.mutable_from()->set_family("simt");
  comparison_.mutable_to()->set_family("tiles");
  EXPECT_THAT(Compared(), ElementsAre("b1.h1.q128.d64.f16 FASTER 70 to 40"));
}

TEST_F(TrendsTest, ASelectionThatMeansNothingIsRefused) {
  comparison_.mutable_from()->set_device_id("tpu");
  EXPECT_THAT(Refused(), HasSubstr("from.device_id is 'tpu'; this host has: cuda:0 (l4), cuda:1 (h200)"));
  comparison_.mutable_from()->clear_device_id();
  comparison_.mutable_to()->set_family("simt");
  comparison_.mutable_to()->set_driver("580.1");
  EXPECT_THAT(Refused(), HasSubstr("to.family is 'simt' beside"));
}

}  // namespace
}  // namespace attune::sweep
