#include "server/sweep/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::sweep {
namespace {

using ::testing::ElementsAre;

v1::Device Card(const std::string& id, const std::string& of_class) {
  v1::Device device;
  device.set_id(id);
  device.set_fingerprint(of_class);
  return device;
}

class SharesTest : public ::testing::Test {
 protected:
  const v1::Device a_ = Card("cuda:0", "l4");
  const v1::Device b_ = Card("cuda:1", "l4");
  const v1::Device other_ = Card("cuda:2", "h200");
  Shares shares_{ClassesOf({&a_, &b_, &other_})};
};

TEST_F(SharesTest, EachCardHasOneAtHand) {
  for (const size_t problem : {1, 2, 3}) shares_.Add(problem, 0, "");
  const auto first = shares_.Take({});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->problem, 1U);
  EXPECT_THAT(first->cards, ElementsAre("cuda:0", "cuda:1"));
  EXPECT_EQ(shares_.Take({{0, ""}})->problem, 2U);
  EXPECT_FALSE(shares_.Take({{0, "cuda:0"}, {0, ""}}).has_value());
  EXPECT_EQ(shares_.Take({{0, "cuda:1"}})->problem, 3U);
  EXPECT_FALSE(shares_.Take({}).has_value()) << "nothing is left";
}

TEST_F(SharesTest, WhatWaitsForACardGoesToItFirstAndToNoOther) {
  shares_.Add(1, 0, "");
  shares_.Add(2, 0, "cuda:1");
  shares_.Add(3, 0, "cuda:1");
  const auto first = shares_.Take({});
  EXPECT_EQ(first->problem, 2U);
  EXPECT_THAT(first->cards, ElementsAre("cuda:1"));
  EXPECT_EQ(shares_.Take({{0, "cuda:1"}})->problem, 1U);
  EXPECT_FALSE(shares_.Take({{0, "cuda:1"}}).has_value()) << "the other one is none of its cards";
  EXPECT_EQ(shares_.Take({{0, "cuda:0"}})->problem, 3U);
}

TEST_F(SharesTest, ClassesDoNotMix) {
  shares_.Add(1, 0, "");
  shares_.Add(2, 1, "");
  const auto next = shares_.Take({{0, "cuda:0"}, {0, "cuda:1"}});
  EXPECT_EQ(next->problem, 2U);
  EXPECT_THAT(next->cards, ElementsAre("cuda:2"));
}

TEST_F(SharesTest, ARetiredCardTakesNoMore) {
  shares_.Add(1, 0, "cuda:0");
  shares_.Add(2, 0, "");
  shares_.Add(3, 0, "");
  shares_.Retire("cuda:0");
  EXPECT_EQ(shares_.TakeHopeless(), 1U);
  EXPECT_EQ(shares_.TakeHopeless(), std::nullopt) << "another card is left";
  EXPECT_EQ(shares_.Take({{0, "cuda:0"}})->problem, 2U);
  shares_.Retire("cuda:1");
  EXPECT_FALSE(shares_.Take({}).has_value());
  EXPECT_EQ(shares_.TakeHopeless(), 3U);
}

TEST_F(SharesTest, AFleetsCardHasAsManyAtHandAsItIsToldAndWhatIsForAnyIsForNoneInParticular) {
  shares_.SetFleet(0, {"hosts/a/devices/cuda:0", "hosts/b/devices/cuda:0"}, 2);
  for (const size_t problem : {1, 2}) shares_.Add(problem, 0, "");
  for (const size_t problem : {3, 4, 5}) shares_.Add(problem, 0, "hosts/b/devices/cuda:0");
  const Shares::AtHand for_b = {0, "hosts/b/devices/cuda:0"};
  EXPECT_THAT(shares_.Take({})->cards, ElementsAre("hosts/b/devices/cuda:0"));
  EXPECT_EQ(shares_.Take({for_b})->problem, 4U);
  const auto any = shares_.Take({for_b, for_b});
  EXPECT_EQ(any->problem, 1U) << "it has two";
  EXPECT_THAT(any->cards, ::testing::IsEmpty());
  EXPECT_EQ(shares_.Take({for_b, for_b, {0, ""}})->problem, 2U);
  EXPECT_FALSE(shares_.Take({for_b, for_b, {0, ""}, {0, ""}}).has_value());
}

TEST_F(SharesTest, WhatWaitedForAFleetsCardThatIsGoneIsForAny) {
  shares_.SetFleet(0, {"hosts/a/devices/cuda:0", "hosts/b/devices/cuda:0"}, 1);
  shares_.Add(1, 0, "hosts/b/devices/cuda:0");
  shares_.SetFleet(0, {"hosts/a/devices/cuda:0"}, 1);
  const auto next = shares_.Take({});
  EXPECT_EQ(next->problem, 1U);
  EXPECT_THAT(next->cards, ::testing::IsEmpty());
}

// Nobody keeps a card that has spent its time from what any card may take.
TEST_F(SharesTest, NothingIsForAnyOnceOneOfAFleetsCardsIsRetired) {
  const std::vector<std::string> cards = {"hosts/a/devices/cuda:0", "hosts/b/devices/cuda:0"};
  shares_.SetFleet(0, cards, 1);
  shares_.Add(1, 0, "");
  shares_.Add(2, 0, cards[0]);
  shares_.Add(3, 0, cards[1]);
  shares_.Retire(cards[0]);
  shares_.SetFleet(0, cards, 1);
  EXPECT_EQ(shares_.Take({})->problem, 3U) << "its own time is left";
  EXPECT_FALSE(shares_.Take({}).has_value());
  EXPECT_EQ(shares_.TakeHopeless(), 1U);
  EXPECT_EQ(shares_.TakeHopeless(), 2U);
  EXPECT_EQ(shares_.TakeHopeless(), std::nullopt);
}

}  // namespace
}  // namespace attune::sweep
