// Sweeps that ask for sanitizers, over fakes.
#include "server/jobs/testing/tuner_fixture.h"
#include "server/profile/testing/fake_tools.h"

namespace attune::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SanitizeTest : public jobs::TunerTest {
 protected:
  void SetUp() override {
    tools_ = &fake_;
    FastestIs("BLOCK=32");
    Start();
  }
  // 40 us; all others take 100.
  void FastestIs(const std::string& code) {
    device_.ScriptUs([code](const worker::v1::Candidate& candidate) {
      return absl::StrContains(candidate.artifact(), code) ? 40.0 : 100.0;
    });
  }
  static v1::SweepRequest Request() {
    v1::SweepRequest request;
    request.mutable_plan()->set_title("nightly");
    request.mutable_plan()->set_device_id("cuda:0");
    request.mutable_plan()->set_policy(v1::POLICY_HOT);
    request.mutable_plan()->set_sanitize(true);
    request.mutable_plan()->add_shapes()->add_problem(kProblem);
    return request;
  }
  v1::SweepReport Sweep(const v1::SweepRequest& request = Request()) {
    return AwaitStarted(tuner_->Sweep(request)).sweep();
  }

  profile::FakeTools fake_;
};

TEST_F(SanitizeTest, ANewIncumbentHasPassedAllSanitizers) {
  const v1::SweepReport report = Sweep();
  EXPECT_EQ(report.rows(0).outcome(), v1::SweepReport::OUTCOME_NEW);
  EXPECT_EQ(report.rows(0).sanitizers(), "clean");
  EXPECT_THAT(fake_.tools, SizeIs(4));
  EXPECT_THAT(Served(), HasSubstr("BLOCK=32"));
  EXPECT_THAT(report.markdown(), HasSubstr("| sanitizers |"));
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->trial().name().empty(), false);
}

TEST_F(SanitizeTest, OneThatIsServedAlreadyIsNotAskedAgain) {
  Sweep();
  const v1::SweepReport second = Sweep();
  EXPECT_EQ(second.rows(0).outcome(), v1::SweepReport::OUTCOME_SAME);
  EXPECT_EQ(second.rows(0).sanitizers(), "");
  EXPECT_THAT(fake_.tools, SizeIs(4));
  EXPECT_THAT(second.markdown(), Not(HasSubstr("sanitizers")));
}

TEST_F(SanitizeTest, WithoutTheKeyNobodyIsAsked) {
  v1::SweepRequest request = Request();
  request.mutable_plan()->clear_sanitize();
  Sweep(request);
  EXPECT_THAT(fake_.tools, IsEmpty());
}

TEST_F(SanitizeTest, OneWithFindingsIsNotPromotedAndTheNextBestIs) {
  fake_.finds = v1::SANITIZER_TOOL_RACECHECK;
  fake_.finds_in = "BLOCK=32";
  const v1::SweepReport report = Sweep();
  EXPECT_EQ(report.rows(0).outcome(), v1::SweepReport::OUTCOME_NEW);
  EXPECT_THAT(Served(), Not(HasSubstr("BLOCK=32")));
  EXPECT_THAT(report.rows(0).sanitizers(), HasSubstr("BLOCK=32"));
  EXPECT_THAT(report.rows(0).sanitizers(), HasSubstr("racecheck reports 2 errors: Invalid read"));
  EXPECT_THAT(report.rows(0).sanitizers(), HasSubstr("; clean"));
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("is not promoted: racecheck reports 2 errors"));
}

TEST_F(SanitizeTest, WhereAllHaveFindingsNothingIsServed) {
  fake_.finds = v1::SANITIZER_TOOL_MEMCHECK;
  const v1::SweepReport report = Sweep();
  EXPECT_EQ(report.rows(0).outcome(), v1::SweepReport::OUTCOME_FAILED);
  EXPECT_FALSE(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT).ok());
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("is not promoted: memcheck reports 2 errors"));
}

// Also when it was served before sweeps asked for sanitizers.
TEST_F(SanitizeTest, TheIncumbentStaysWhereAChallengerHasFindings) {
  v1::TuneRequest few = TuneRequest();
  few.add_where("BLOCK == 16");
  Tune(few);
  const std::string before = Served();
  ASSERT_THAT(before, HasSubstr("BLOCK=16"));
  fake_.finds = v1::SANITIZER_TOOL_RACECHECK;
  const v1::SweepReport report = Sweep();
  EXPECT_EQ(Served(), before);
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("is not promoted"));
}

TEST_F(SanitizeTest, AToolWithoutAResultPromotesNothing) {
  fake_.late = v1::SANITIZER_TOOL_INITCHECK;
  EXPECT_EQ(Sweep().rows(0).outcome(), v1::SweepReport::OUTCOME_FAILED);
  EXPECT_FALSE(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT).ok());
}

TEST_F(SanitizeTest, IsRefusedOnAHostWithoutTheTool) {
  fake_.here = absl::FailedPreconditionError("this host has no compute-sanitizer");
  const absl::Status status = tuner_->Sweep(Request()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "sanitize is true, and this host has no compute-sanitizer");
}

}  // namespace
}  // namespace attune::sweep
