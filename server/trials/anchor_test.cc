#include "server/trials/anchor.h"

#include "gtest/gtest.h"

namespace attune::trials {
namespace {

v1::Timing Around(double us) {
  v1::Timing timing;
  timing.set_low_us(0.998 * us);
  timing.set_median_us(us);
  timing.set_high_us(1.002 * us);
  return timing;
}

worker::v1::Candidate Named(const std::string& artifact) {
  worker::v1::Candidate candidate;
  candidate.set_artifact(artifact);
  return candidate;
}

class AnchorTest : public ::testing::Test {
 protected:
  // Who is due, or "".
  std::string Due() const { return anchor_.Due() == nullptr ? "" : anchor_.Due()->artifact(); }

  Anchor anchor_;
};

TEST_F(AnchorTest, NobodyIsGivenUpBeforeItIsTimed) {
  EXPECT_EQ(anchor_.Due(), nullptr);
  anchor_.Note(Around(100), Named("a"));
  EXPECT_EQ(Due(), "a");
  EXPECT_EQ(anchor_.YardstickUs(), 0);
  anchor_.Timed(Around(101));
  EXPECT_EQ(Due(), "");
  EXPECT_DOUBLE_EQ(anchor_.YardstickUs(), 1.002 * 101);
}

TEST_F(AnchorTest, TakesAnotherCardsWhereThatIsClearlyFasterHereToo) {
  anchor_.Note(Around(100), Named("a"));
  anchor_.Offer(Named("other"));
  EXPECT_EQ(Due(), "a") << "its own first";
  anchor_.Timed(Around(100));
  EXPECT_EQ(Due(), "other");
  anchor_.Timed(Around(99.9));
  EXPECT_DOUBLE_EQ(anchor_.YardstickUs(), 1.002 * 100) << "not told apart here";
  EXPECT_EQ(Due(), "");
  anchor_.Offer(Named("another"));
  anchor_.Timed(std::nullopt);
  EXPECT_DOUBLE_EQ(anchor_.YardstickUs(), 1.002 * 100) << "it could not be timed here";
  anchor_.Offer(Named("faster"));
  anchor_.Timed(Around(90));
  EXPECT_DOUBLE_EQ(anchor_.YardstickUs(), 1.002 * 90);
  EXPECT_EQ(Due(), "");
  EXPECT_EQ(anchor_.moved(), 0) << "of two variants";
  for (int i = 0; i < Anchor::kEvery; ++i) anchor_.Note(Around(120), Named("slower"));
  EXPECT_EQ(Due(), "faster") << "timed again as its own is";
}

TEST_F(AnchorTest, TakesAnotherCardsWhereItHasNone) {
  anchor_.Offer(Named("other"));
  EXPECT_EQ(Due(), "other");
  anchor_.Timed(Around(50));
  EXPECT_DOUBLE_EQ(anchor_.YardstickUs(), 1.002 * 50);
}

TEST_F(AnchorTest, SaysWhetherItHasChanged) {
  EXPECT_TRUE(anchor_.Note(Around(100), Named("a")));
  EXPECT_FALSE(anchor_.Note(Around(100), Named("b")));
  EXPECT_TRUE(anchor_.Note(Around(90), Named("c")));
}

TEST_F(AnchorTest, IsTheLastThatWasClearlyFaster) {
  anchor_.Note(Around(100), Named("a"));
  anchor_.Timed(Around(100));
  anchor_.Note(Around(99.8), Named("not told apart"));
  EXPECT_EQ(Due(), "");
  anchor_.Note(Around(98), Named("b"));
  EXPECT_EQ(Due(), "b");
  EXPECT_EQ(anchor_.YardstickUs(), 0);
  anchor_.Timed(Around(99));
  EXPECT_DOUBLE_EQ(anchor_.YardstickUs(), 1.002 * 99);
  EXPECT_EQ(anchor_.moved(), 0);
}

TEST_F(AnchorTest, IsTimedAgainEveryTwentyTrials) {
  anchor_.Note(Around(100), Named("a"));
  anchor_.Timed(Around(100));
  for (int i = 0; i < Anchor::kEvery - 1; ++i) anchor_.Note(Around(150), Named("slow"));
  EXPECT_EQ(Due(), "");
  anchor_.Note(Around(150), Named("slow"));
  EXPECT_EQ(Due(), "a");
}

TEST_F(AnchorTest, SaysByHowMuchItsTimeHasMoved) {
  anchor_.Note(Around(100), Named("a"));
  anchor_.Timed(Around(100));
  anchor_.Timed(Around(100.8));  // apart, but within what is none
  EXPECT_EQ(anchor_.moved(), 0);
  anchor_.Timed(Around(104.832));
  EXPECT_NEAR(anchor_.moved(), 0.04, 1e-9);
  anchor_.Timed(Around(104.832));
  EXPECT_NEAR(anchor_.moved(), 0.04, 1e-9);
  EXPECT_DOUBLE_EQ(anchor_.YardstickUs(), 1.002 * 104.832);
}

TEST_F(AnchorTest, AContendedTimeIsNone) {
  v1::Timing contended = Around(100);
  contended.set_contended(true);
  anchor_.Note(contended, Named("a"));
  EXPECT_EQ(Due(), "");
  anchor_.Note(Around(100), Named("a"));
  anchor_.Timed(contended);
  EXPECT_EQ(anchor_.YardstickUs(), 0);
  anchor_.Timed(std::nullopt);
  EXPECT_EQ(anchor_.YardstickUs(), 0);
}

}  // namespace
}  // namespace attune::trials
