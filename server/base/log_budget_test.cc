#include "server/base/log_budget.h"

#include "gtest/gtest.h"

namespace attune {
namespace {

class LogBudgetTest : public ::testing::Test {
 protected:
  LogBudget::Answer Ask(absl::string_view event) { return budget_.Ask(event, now_, left_out_); }

  LogBudget budget_;
  absl::Time now_ = absl::UnixEpoch();
  int64_t left_out_ = 0;
};

TEST_F(LogBudgetTest, TakesABurstThenAnnouncesOnceThatLinesAreLeftOut) {
  for (int i = 0; i < LogBudget::kBurst; ++i) ASSERT_EQ(Ask("noise"), LogBudget::Answer::kWrite);
  EXPECT_EQ(Ask("noise"), LogBudget::Answer::kAnnounce);
  EXPECT_EQ(Ask("noise"), LogBudget::Answer::kLeaveOut);
}

TEST_F(LogBudgetTest, SaysHowManyWereLeftOutWhenItGoesOn) {
  for (int i = 0; i < LogBudget::kBurst + 7; ++i) Ask("noise");
  now_ += LogBudget::kInterval;
  EXPECT_EQ(Ask("noise"), LogBudget::Answer::kWrite);
  EXPECT_EQ(left_out_, 7);
  now_ += LogBudget::kInterval;
  EXPECT_EQ(Ask("noise"), LogBudget::Answer::kWrite);
  EXPECT_EQ(left_out_, 0);
}

TEST_F(LogBudgetTest, OneEventDoesNotHideAnother) {
  for (int i = 0; i < 2 * LogBudget::kBurst; ++i) Ask("noise");
  EXPECT_EQ(Ask("disk full"), LogBudget::Answer::kWrite);
}

}  // namespace
}  // namespace attune
