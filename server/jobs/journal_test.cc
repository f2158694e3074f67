#include "server/jobs/journal.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::jobs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    operation_.set_name("operations/7");
    operation_.set_title("tune P");
    v1::OperationProgress& progress = *operation_.mutable_progress();
    progress.mutable_elapsed()->set_seconds(2);
    progress.mutable_elapsed()->set_nanos(540'000'000);
    progress.set_trials_done(5);
    progress.set_trials_reused(1);
    for (const auto& [verdict, count] : {std::pair(v1::VERDICT_OK, 4), std::pair(v1::VERDICT_CRASHED, 1)}) {
      v1::VerdictCount& row = *progress.add_verdicts();
      row.set_verdict(verdict);
      row.set_count(count);
    }
  }
  static v1::Incumbent IncumbentOf(const char* variant, double us) {
    v1::Incumbent incumbent;
    incumbent.set_problem_text("P");
    incumbent.set_device_id("cuda:0");
    incumbent.set_policy(v1::POLICY_HOT);
    incumbent.set_why("faster");
    incumbent.mutable_trial()->mutable_variant()->set_text(variant);
    incumbent.mutable_trial()->mutable_timing()->set_median_us(us);
    return incumbent;
  }
  template <typename Act>
  static std::string Logged(Act act) {
    ::testing::internal::CaptureStderr();
    act();
    return ::testing::internal::GetCapturedStderr();
  }

  v1::Operation operation_;
};

TEST_F(JournalTest, AJobsEndSaysHowItsTrialsEnded) {
  operation_.set_state(v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Logged([&] { LogJobEnd(operation_); }),
              HasSubstr(" info job ended job=operations/7 title=\"tune P\" state=SUCCEEDED seconds=2.5 trials=5 "
                        "reused=1 verdicts=OK:4,CRASHED:1\n"));
}

TEST_F(JournalTest, AFailureIsAnErrorWithItsReasonInOneLine) {
  operation_.set_state(v1::Operation::STATE_FAILED);
  operation_.mutable_error()->set_message("does not compile\nkilled");
  EXPECT_THAT(Logged([&] { LogJobEnd(operation_); }),
              AllOf(HasSubstr(" error job ended "), HasSubstr("error=\"does not compile\\nkilled\"\n")));
}

TEST_F(JournalTest, ASweepsEndCountsItsOutcomes) {
  operation_.set_state(v1::Operation::STATE_SUCCEEDED);
  for (const auto outcome :
       {v1::SweepReport::OUTCOME_NEW, v1::SweepReport::OUTCOME_SLOWER, v1::SweepReport::OUTCOME_NEW}) {
    operation_.mutable_sweep()->add_rows()->set_outcome(outcome);
  }
  EXPECT_THAT(Logged([&] { LogJobEnd(operation_); }), HasSubstr(" outcomes=NEW:2,SLOWER:1 "));
}

TEST_F(JournalTest, APromotionHasBeforeAndAfter) {
  const v1::Incumbent now = IncumbentOf("a:B=1", 106.25);
  EXPECT_THAT(Logged([&] { LogPromotion(IncumbentOf("a:B=2", 224), now); }),
              HasSubstr(" promoted problem=P device=cuda:0 policy=HOT variant=\"a:B=1\" us=106.2 before=\"a:B=2\" "
                        "before_us=224 why=faster "));
  EXPECT_THAT(Logged([&] { LogPromotion(std::nullopt, now); }), Not(HasSubstr("before")));
}

TEST_F(JournalTest, ARollBackSaysWhatIsServedAgain) {
  EXPECT_THAT(Logged([&] { LogRollBack(IncumbentOf("a:B=2", 224), "a wrong result"); }),
              HasSubstr(" rolled back problem=P device=cuda:0 policy=HOT variant=\"a:B=2\" us=224 "
                        "why=\"a wrong result\"\n"));
}

TEST_F(JournalTest, TrialsAreFinePrint) {
  EXPECT_EQ(Logged([] { LogTrial(v1::Trial()); }), "");
}

}  // namespace
}  // namespace attune::jobs
