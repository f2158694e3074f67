#include "server/trials/card_trials.h"

#include "gtest/gtest.h"

namespace attune::trials {
namespace {

worker::v1::Candidate Offered(const std::string& artifact) {
  worker::v1::Candidate candidate;
  candidate.set_artifact(artifact);
  return candidate;
}

class AnchorOfferTest : public ::testing::Test {
 protected:
  // What is new for the card, or "".
  std::string NewFor(const std::string& card) {
    const std::optional<worker::v1::Candidate> candidate = offer_.NewFor(card, seen_[card]);
    return candidate.has_value() ? candidate->artifact() : "";
  }

  AnchorOffer offer_;
  std::map<std::string, uint64_t> seen_;
};

TEST_F(AnchorOfferTest, IsOfOtherCards) {
  EXPECT_EQ(NewFor("a"), "");
  offer_.Post("a", Offered("1"));
  EXPECT_EQ(NewFor("a"), "");
  EXPECT_EQ(NewFor("b"), "1");
  EXPECT_EQ(NewFor("b"), "") << "seen";
}

TEST_F(AnchorOfferTest, IsEachCardsLast) {
  offer_.Post("a", Offered("1"));
  offer_.Post("b", Offered("2"));
  offer_.Post("a", Offered("3"));
  EXPECT_EQ(NewFor("b"), "3") << "not hidden by its own";
  EXPECT_EQ(NewFor("c"), "2");
  EXPECT_EQ(NewFor("c"), "3");
  EXPECT_EQ(NewFor("c"), "");
  EXPECT_EQ(NewFor("a"), "2");
}

}  // namespace
}  // namespace attune::trials
