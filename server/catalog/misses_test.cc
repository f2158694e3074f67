#include "server/catalog/misses.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::catalog {
namespace {

using ::testing::ElementsAre;

const absl::Time kNoon = absl::FromUnixSeconds(1'764'000'000);

class MissesTest : public ::testing::Test {
 protected:
  // Asks `times` times for the problem of `batch`, the last time at `now`.
  MissPtr Ask(int batch, absl::Time now = kNoon, int times = 1, const std::string& device_class = "an L4") {
    const ResultKey key{absl::StrCat("b", batch, ".h8.q512.d64.f16"), device_class, v1::POLICY_HOT};
    v1::Device device;
    device.set_id("cuda:0");
    MissPtr miss = misses_.Note(key, device, answer_, now);
    for (int i = 0; miss != nullptr && i < times; ++i) EXPECT_TRUE(miss->Count(now));
    return miss;
  }

  store::Page<v1::Miss> List(int page_size = 1000, const std::string& token = "", const std::string& of = "") {
    auto page = misses_.List(of, page_size, token);
    EXPECT_TRUE(page.ok()) << page.status();
    return *std::move(page);
  }

  // "b3: 2" for one asked for twice.
  static std::vector<std::string> Counts(const store::Page<v1::Miss>& page) {
    std::vector<std::string> counts;
    for (const v1::Miss& miss : page.items) {
      counts.push_back(absl::StrCat("b", miss.problem().batch(), ": ", miss.count()));
    }
    return counts;
  }

  std::set<std::string> tuned_;  // problems
  absl::StatusOr<v1::GetBestResponse> answer_ = v1::GetBestResponse();
  Misses misses_{[this](const ResultKey& key) { return tuned_.contains(key.problem_text); }, /*most=*/8};
};

TEST_F(MissesTest, ListsWhatWasAskedForMostOftenFirst) {
  Ask(1);
  Ask(2, kNoon, 3);
  Ask(3);
  Ask(1, kNoon + absl::Seconds(90));
  const auto page = List();
  EXPECT_THAT(Counts(page), ElementsAre("b2: 3", "b1: 2", "b3: 1"));
  EXPECT_EQ(page.items[1].first_time().seconds(), absl::ToUnixSeconds(kNoon));
  EXPECT_EQ(page.items[1].last_time().seconds(), absl::ToUnixSeconds(kNoon) + 90);
  EXPECT_EQ(page.next_page_token, "");
}

TEST_F(MissesTest, SaysWhatTheAnswerWas) {
  answer_->set_provenance(v1::PROVENANCE_NEAREST);
  answer_->set_provenance_detail("from b2.h8.q256.d64.f16");
  answer_->mutable_variant()->set_text("tiles:BLOCK=32");
  answer_->set_artifact_state(v1::ARTIFACT_STATE_COMPILING);
  Ask(1);
  answer_->set_artifact_state(v1::ARTIFACT_STATE_READY);
  Ask(1);
  answer_ = absl::NotFoundError("no kernel family has a variant for it");
  Ask(2);
  const auto page = List();
  ASSERT_EQ(page.items.size(), 2);
  EXPECT_EQ(page.items[0].provenance_detail(), "from b2.h8.q256.d64.f16");
  EXPECT_EQ(page.items[0].variant().text(), "tiles:BLOCK=32");
  EXPECT_EQ(page.items[0].artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_EQ(page.items[0].problem_text(), "b1.h8.q512.d64.f16");
  EXPECT_EQ(page.items[0].device_id(), "cuda:0");
  EXPECT_EQ(page.items[1].provenance(), v1::PROVENANCE_UNSPECIFIED);
  EXPECT_EQ(page.items[1].provenance_detail(), "no kernel family has a variant for it");
}

TEST_F(MissesTest, WhatIsTunedIsNoMiss) {
  const MissPtr miss = Ask(1);
  Ask(2);
  tuned_.insert("b1.h8.q512.d64.f16");
  EXPECT_EQ(Ask(1), nullptr);
  EXPECT_THAT(Counts(List()), ElementsAre("b2: 1"));
  EXPECT_FALSE(miss->Count(kNoon));
}

TEST_F(MissesTest, PagesGoOnBehindOneAnother) {
  for (const int batch : {1, 2, 3, 4, 5}) Ask(batch, kNoon, batch == 4 ? 2 : 1);
  const auto first = List(2);
  EXPECT_THAT(Counts(first), ElementsAre("b4: 2", "b1: 1"));
  const auto second = List(2, first.next_page_token);
  EXPECT_THAT(Counts(second), ElementsAre("b2: 1", "b3: 1"));
  const auto third = List(2, second.next_page_token);
  EXPECT_THAT(Counts(third), ElementsAre("b5: 1"));
  EXPECT_EQ(third.next_page_token, "");
  EXPECT_TRUE(absl::IsInvalidArgument(misses_.List("an H200", 2, first.next_page_token).status()));
}

TEST_F(MissesTest, OneThatIsAskedForBetweenPagesIsOnNoneTwice) {
  for (const int batch : {1, 2, 3}) Ask(batch);
  const auto first = List(1);
  EXPECT_THAT(Counts(first), ElementsAre("b1: 1"));
  Ask(1);
  EXPECT_THAT(Counts(List(5, first.next_page_token)), ElementsAre("b2: 1", "b3: 1"));
}

TEST_F(MissesTest, AClassHasMissesOfItsOwn) {
  Ask(1);
  Ask(1, kNoon, 5, "an H200");
  EXPECT_THAT(Counts(List(10, "", "an L4")), ElementsAre("b1: 1"));
  EXPECT_THAT(Counts(List(10, "", "an H200")), ElementsAre("b1: 5"));
  EXPECT_THAT(Counts(List()), ElementsAre("b1: 5", "b1: 1"));
}

TEST_F(MissesTest, WhereThereIsNoRoomTheLeastRecentlyAskedForGoes) {
  std::vector<MissPtr> asked;
  for (int batch = 1; batch <= 8; ++batch) asked.push_back(Ask(batch, kNoon + absl::Seconds(batch), 10 - batch));
  // Known to the table only through its counter, as a call that is answered from kept bytes.
  EXPECT_TRUE(asked[0]->Count(kNoon + absl::Seconds(20)));
  Ask(9, kNoon + absl::Seconds(21));
  const auto page = List();
  EXPECT_EQ(page.items.size(), 8);
  EXPECT_THAT(Counts(page), ::testing::Contains("b1: 10"));
  EXPECT_THAT(Counts(page), ::testing::Not(::testing::Contains("b2: 8")));
  EXPECT_FALSE(asked[1]->Count(kNoon)) << "it has to be noted anew";
  Ask(2, kNoon + absl::Seconds(22));
  EXPECT_THAT(Counts(List()), ::testing::Contains("b2: 1"));
}

TEST_F(MissesTest, OfThoseAskedForAtTheSameTimeTheLeastOftenAskedForGoes) {
  for (int batch = 1; batch <= 8; ++batch) Ask(batch, kNoon, batch == 5 ? 1 : 2);
  Ask(9);
  EXPECT_THAT(Counts(List()), ::testing::Not(::testing::Contains("b5: 1")));
}

TEST_F(MissesTest, RoomIsMadeOfWhatWasTunedFirst) {
  for (int batch = 1; batch <= 8; ++batch) Ask(batch, kNoon + absl::Seconds(batch));
  tuned_.insert("b8.h8.q512.d64.f16");
  Ask(9, kNoon + absl::Seconds(9));
  EXPECT_THAT(Counts(List()), ::testing::Contains("b1: 1"));
}

}  // namespace
}  // namespace attune::catalog
