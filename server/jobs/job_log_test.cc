#include "server/jobs/job_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/logged.h"

namespace attune::jobs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class JobLogTest : public ::testing::Test {
 protected:
  JobLogTest() {
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
  v1::Operation operation_;
};

TEST_F(JobLogTest, AJobIsNamedWithItsTitle) {
  EXPECT_THAT(Logged([&] { LogJob("job queued", operation_); }),
              HasSubstr(" info job queued job=operations/7 title=\"tune P\"\n"));
}

TEST_F(JobLogTest, AJobIsLoggedWithWhoAskedForItAndInWhichTrace) {
  operation_.set_principal("user:alice");
  operation_.set_state(v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Logged([&] { LogJob("job queued", operation_, "4bf9"); }),
              HasSubstr(" title=\"tune P\" principal=user:alice trace=4bf9\n"));
  EXPECT_THAT(Logged([&] { LogJobEnd(operation_, "4bf9"); }), HasSubstr(" principal=user:alice trace=4bf9\n"));
}

TEST_F(JobLogTest, AJobsEndSaysHowItsTrialsEnded) {
  operation_.set_state(v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Logged([&] { LogJobEnd(operation_); }),
              HasSubstr(" info job ended job=operations/7 title=\"tune P\" state=SUCCEEDED seconds=2.5 trials=5 "
                        "reused=1 verdicts=OK:4,CRASHED:1\n"));
}

TEST_F(JobLogTest, AFailureIsAnErrorWithItsReasonInOneLine) {
  operation_.set_state(v1::Operation::STATE_FAILED);
  operation_.mutable_error()->set_message("does not compile\nkilled");
  EXPECT_THAT(Logged([&] { LogJobEnd(operation_); }),
              AllOf(HasSubstr(" error job ended "), HasSubstr("error=\"does not compile\\nkilled\"\n")));
}

TEST_F(JobLogTest, ASweepsEndCountsItsOutcomes) {
  operation_.set_state(v1::Operation::STATE_SUCCEEDED);
  for (const auto outcome :
       {v1::SweepReport::OUTCOME_NEW, v1::SweepReport::OUTCOME_SLOWER, v1::SweepReport::OUTCOME_NEW}) {
    operation_.mutable_sweep()->add_rows()->set_outcome(outcome);
  }
  EXPECT_THAT(Logged([&] { LogJobEnd(operation_); }), HasSubstr(" outcomes=NEW:2,SLOWER:1 "));
}

}  // namespace
}  // namespace attune::jobs
