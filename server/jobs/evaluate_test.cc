// Evaluating one variant, and pinning it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/base/reason.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class EvaluateTest : public TunerTest {
 protected:
  v1::EvaluateVariantRequest Request(const std::string& variant) {
    v1::EvaluateVariantRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(kProblem));
    request.set_device_id("cuda:0");
    request.set_policy(v1::POLICY_HOT);
    request.mutable_variant()->set_text(variant);
    return request;
  }
  v1::EvaluateResult Evaluate(const std::string& variant) {
    const v1::Operation done = AwaitStarted(tuner_->Evaluate(Request(variant)));
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
    return done.evaluate();
  }
  v1::EvaluateResult Pin(const std::string& variant) {
    v1::EvaluateVariantRequest request = Request(variant);
    request.set_pin(true);
    request.set_why("as last month");
    const v1::Operation done = AwaitStarted(tuner_->Evaluate(request));
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
    return done.evaluate();
  }
  v1::Incumbent Served() { return *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT); }
};

TEST_F(EvaluateTest, KeepsAndPromotesWhereThereIsNoIncumbent) {
  Start();
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_KEEP);
  EXPECT_THAT(store_.trials(), SizeIs(1));
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->trial().variant().text(),
            "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(EvaluateTest, KeepsWhatIsTwoPercentFasterAndApart) {
  SetTimes({{"32/8", 97}});
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_KEEP);
  EXPECT_NEAR(result.speedup(), 100.0 / 97, 1e-9);
  EXPECT_EQ(result.incumbent().variant().text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(result.trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(EvaluateTest, RevertsWhatIsFasterByLess) {
  SetTimes({{"32/8", 98.5}});  // apart, but 1.5 %
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_REVERT);
  EXPECT_GT(result.speedup(), 1.01);
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->trial().variant().text(),
            "tiles:BLOCK=16,SPLITS=1");
}

TEST_F(EvaluateTest, RevertsWhatIsMuchSlowerAndStillSaysByHowMuch) {
  SetTimes({{"32/8", 400}});
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_REVERT);
  EXPECT_DOUBLE_EQ(result.speedup(), 0.25);
}

TEST_F(EvaluateTest, RevertsWhatIsWrongWithItsVerdict) {
  device_.ScriptTrial([](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response;
    response.set_verdict(v1::VERDICT_WRONG_RESULT);
    response.set_detail("o[3] is 7");
    return response;
  });
  Start();
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_REVERT);
  EXPECT_EQ(result.reason(), "WRONG_RESULT: o[3] is 7");
  EXPECT_EQ(changes(), 0);
}

TEST_F(EvaluateTest, TheIncumbentItselfIsKept) {
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_KEEP);
  EXPECT_THAT(result.reason(), HasSubstr("this already is the incumbent"));
  EXPECT_FALSE(result.has_incumbent());
  EXPECT_EQ(result.speedup(), 0);
}

TEST_F(EvaluateTest, APinServesASlowerVariantAndSaysSo) {
  SetTimes({{"32/8", 400}});
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  const v1::EvaluateResult result = Pin("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_PINNED);
  EXPECT_THAT(result.reason(), HasSubstr("pinned at 400.00 us"));
  EXPECT_THAT(result.reason(), HasSubstr("slower than the incumbent before it at 100.00 us"));
  EXPECT_THAT(result.reason(), HasSubstr(": as last month"));
  EXPECT_EQ(Served().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_TRUE(Served().pinned());
  EXPECT_EQ(Served().timing().median_us(), 400);
}

TEST_F(EvaluateTest, APinnedIncumbentStaysUntilItIsUnpinned) {
  SetTimes({{"32/8", 400}});
  Start();
  Pin("tiles:BLOCK=32,SPLITS=2");
  const v1::Operation tuned = Tune();
  EXPECT_FALSE(tuned.tune().promoted());
  EXPECT_THAT(tuned.tune().decision(), HasSubstr("it is pinned, though the challenger at 100.00 us"));
  EXPECT_EQ(Evaluate("tiles:BLOCK=16,SPLITS=1").decision(), v1::EvaluateResult::DECISION_REVERT);
  EXPECT_TRUE(Served().pinned());
  ASSERT_TRUE(store_.Unpin(kProblem, "an L4", v1::POLICY_HOT).ok());
  EXPECT_TRUE(Tune().tune().promoted());
  EXPECT_FALSE(Served().pinned());
}

TEST_F(EvaluateTest, APinIsKeptWhenItsVariantIsConfirmedUnderANewDriver) {
  SetTimes({{"32/8", 400}});
  Start();
  Pin("tiles:BLOCK=32,SPLITS=2");
  device_.set_driver("999.9");
  Start();
  EXPECT_TRUE(Tune().tune().promoted());
  EXPECT_EQ(Served().trial().dependencies().driver(), "999.9");
  EXPECT_EQ(Served().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_TRUE(Served().pinned());
}

TEST_F(EvaluateTest, AWrongVariantIsNotPinned) {
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  // Right at first, wrong on fresh data.
  device_.ScriptPlayOff(
      [this](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
        worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
        for (int i = 0; i < request.candidates_size(); ++i) {
          if (Seen(request.candidates(i)) != "32/8") continue;
          response.mutable_results(i)->set_verdict(v1::VERDICT_WRONG_RESULT);
          response.mutable_results(i)->set_detail("o[3] is 7");
        }
        return response;
      });
  const v1::EvaluateResult result = Pin("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_REVERT);
  EXPECT_THAT(result.reason(), HasSubstr("not pinned: second check, on fresh data: o[3] is 7"));
  EXPECT_EQ(Served().trial().variant().text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_FALSE(Served().pinned());
}

TEST_F(EvaluateTest, TheIncumbentItselfCanBePinned) {
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(Pin("tiles:BLOCK=16,SPLITS=1").decision(), v1::EvaluateResult::DECISION_PINNED);
  EXPECT_TRUE(Served().pinned());
}

TEST_F(EvaluateTest, TheIncumbentHasThePlayOffsTimeThatTheDecisionNames) {
  device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    *response.mutable_timing() = supervisor::TimingOf(120);  // the play-off has 100
    return response;
  });
  Start();
  const v1::Operation tuned = Tune();
  EXPECT_THAT(tuned.tune().decision(), HasSubstr("100.00 us"));
  EXPECT_EQ(tuned.tune().incumbent().timing().median_us(), 100);
  EXPECT_EQ(Served().timing().median_us(), 100);
  EXPECT_EQ(Served().trial().timing().median_us(), 120);
}

TEST_F(EvaluateTest, AllOfTheVariantIsCheckedHoweverSlowItIs) {
  Start();
  Evaluate("tiles:BLOCK=16,SPLITS=1");
  bool checks_all = false;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    checks_all = request.check_all();
    return device_.Good(request.candidate());
  });
  Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_TRUE(checks_all);
}

// Slow until all of it is asked for.
class SlowTest : public EvaluateTest {
 protected:
  void MakeSlow(const std::string& seen) {
    device_.ScriptTrial(
        [this, seen](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
          worker::v1::TrialResponse response = device_.Good(request.candidate());
          if (Seen(request.candidate()) == seen && !request.check_all()) response.set_verdict(v1::VERDICT_SLOW);
          return response;
        });
  }
};

TEST_F(SlowTest, AVariantThatATuningFoundSlowIsTriedAgainWhenItIsAskedFor) {
  SetTimes({{"32/8", 150}});
  MakeSlow("32/8");
  Start();
  Tune();
  EXPECT_EQ(Verdicts()[v1::VERDICT_SLOW], 1);
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.trial().verdict(), v1::VERDICT_OK) << result.reason();
}

TEST_F(SlowTest, ATuningThatChecksAllTriesAgainWhatWasSlow) {
  SetTimes({{"32/8", 150}});
  MakeSlow("32/8");
  Start();
  Tune();
  v1::TuneRequest request = TuneRequest();
  request.set_check_all(true);
  Tune(request);
  EXPECT_THAT(Tries(), testing::Contains(testing::Pair("tiles:BLOCK=32,SPLITS=2", 2)));
  EXPECT_EQ(Verdicts()[v1::VERDICT_OK], 6);
}

TEST_F(SlowTest, APinnedVariantThatIsSlowTodayStaysServed) {
  SetTimes({{"32/8", 150}});
  Start();
  Tune();
  Pin("tiles:BLOCK=32,SPLITS=2");
  MakeSlow("32/8");
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  EXPECT_FALSE(Tune(request).tune().promoted());
  EXPECT_EQ(Served().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_TRUE(Served().pinned());
}

TEST_F(SlowTest, AnIncumbentThatIsSlowUnderANewDriverIsCheckedAltogetherAndPlaysOff) {
  SetTimes({{"32/8", 50}});
  Start();
  Tune();
  SetTimes({{"32/8", 150}});
  MakeSlow("32/8");
  device_.set_driver("999.9");
  Start();
  const v1::Operation done = Tune();
  EXPECT_THAT(done.tune().decision(), testing::Not(HasSubstr("failed with today's")));
  EXPECT_EQ(done.tune().play_off_size(), 6);
}

TEST_F(EvaluateTest, AnInfeasibleVariantIsRefusedWithThatReason) {
  Start();
  v1::EvaluateVariantRequest request = Request("tiles:BLOCK=16,SPLITS=1");
  *request.mutable_problem() = ToProto(*ParseProblem("b1.h1.q2048.d64.f16"));
  EXPECT_EQ(tuner_->Evaluate(request).status().GetPayload(kReasonUrl), "INFEASIBLE");
}

TEST_F(EvaluateTest, AnUnknownVariantIsRefusedAtOnce) {
  Start();
  EXPECT_TRUE(absl::IsNotFound(tuner_->Evaluate(Request("tails:BLOCK=1")).status()));
  EXPECT_TRUE(absl::IsNotFound(tuner_->Evaluate(Request("reference:PLAIN=0")).status()));
}

}  // namespace
}  // namespace attune::jobs
