// Evaluate and Sweep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

class EvaluateTest : public TunerTest {
 protected:
  v1::EvaluateVariantRequest Request(const std::string& variant) {
    v1::EvaluateVariantRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(kProblem));
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
  v1::Incumbent Served() { return *store_.GetIncumbent(kProblem, "cuda:0", v1::POLICY_HOT); }
};

TEST_F(EvaluateTest, KeepsAndPromotesWhereThereIsNoIncumbent) {
  Start();
  const v1::EvaluateResult result = Evaluate("tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(result.decision(), v1::EvaluateResult::DECISION_KEEP);
  EXPECT_THAT(store_.trials(), SizeIs(1));
  EXPECT_EQ(store_.GetIncumbent(kProblem, "cuda:0", v1::POLICY_HOT)->trial().variant().text(),
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
  EXPECT_EQ(store_.GetIncumbent(kProblem, "cuda:0", v1::POLICY_HOT)->trial().variant().text(),
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
  EXPECT_EQ(promoted(), 0);
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
  EXPECT_THAT(result.reason(), HasSubstr("pinned at 400 us"));
  EXPECT_THAT(result.reason(), HasSubstr("slower than the incumbent before it at 100 us"));
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
  EXPECT_THAT(tuned.tune().decision(), HasSubstr("it is pinned, though the challenger at 100 us"));
  EXPECT_EQ(Evaluate("tiles:BLOCK=16,SPLITS=1").decision(), v1::EvaluateResult::DECISION_REVERT);
  EXPECT_TRUE(Served().pinned());
  ASSERT_TRUE(store_.Unpin(kProblem, "cuda:0", v1::POLICY_HOT).ok());
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
  EXPECT_THAT(tuned.tune().decision(), HasSubstr("100 us"));
  EXPECT_EQ(tuned.tune().incumbent().timing().median_us(), 100);
  EXPECT_EQ(Served().timing().median_us(), 100);
  EXPECT_EQ(Served().trial().timing().median_us(), 120);
}

TEST_F(EvaluateTest, TakesAVariantByItsParametersToo) {
  Start();
  v1::EvaluateVariantRequest request = Request("");
  request.mutable_variant()->set_family("tiles");
  for (const auto& [name, value] : {std::pair{"BLOCK", 64}, std::pair{"SPLITS", 2}}) {
    v1::ParameterValue* parameter = request.mutable_variant()->add_parameters();
    parameter->set_name(name);
    parameter->set_value(value);
  }
  EXPECT_EQ(AwaitStarted(tuner_->Evaluate(request)).evaluate().trial().variant().text(), "tiles:BLOCK=64,SPLITS=2");
}

TEST_F(EvaluateTest, AnUnknownVariantIsRefusedAtOnce) {
  Start();
  EXPECT_TRUE(absl::IsNotFound(tuner_->Evaluate(Request("tails:BLOCK=1")).status()));
  EXPECT_TRUE(absl::IsNotFound(tuner_->Evaluate(Request("reference:PLAIN=0")).status()));
}

class SweepTest : public TunerTest {
 protected:
  v1::SweepRequest Request() {
    v1::SweepRequest request;
    request.mutable_plan()->set_title("nightly");
    request.mutable_plan()->add_shapes()->add_problem(kProblem);
    request.mutable_plan()->mutable_shapes(0)->add_problem("b1.h1.q256.d64.f16");
    return request;
  }
  v1::SweepReport Sweep(const v1::SweepRequest& request) {
    const v1::Operation done = AwaitStarted(tuner_->Sweep(request));
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
    return done.sweep();
  }
  static std::vector<v1::SweepReport::Outcome> Outcomes(const v1::SweepReport& report) {
    std::vector<v1::SweepReport::Outcome> outcomes;
    for (const v1::SweepReport::Row& row : report.rows()) outcomes.push_back(row.outcome());
    return outcomes;
  }
  // All times multiplied.
  void Scale(double factor) {
    device_.ScriptUs([factor](const worker::v1::Candidate& candidate) {
      return factor * (absl::StrContains(candidate.artifact(), "BLOCK=32") ? 40.0 : 100.0);
    });
  }
};

TEST_F(SweepTest, TunesWhatIsNewThenRetimesIncumbentsAndCompilesNothing) {
  Scale(1);
  Start();
  const v1::SweepReport first = Sweep(Request());
  EXPECT_THAT(Outcomes(first), Each(v1::SweepReport::OUTCOME_NEW));
  EXPECT_EQ(first.trials(), 12);
  EXPECT_EQ(first.compiles(), 3);
  const int compiles = pool_.compiles();
  const int trials = device_.Count("trial");
  const v1::SweepReport second = Sweep(Request());
  EXPECT_THAT(Outcomes(second), Each(v1::SweepReport::OUTCOME_SAME));
  EXPECT_FALSE(second.regression());
  EXPECT_EQ(second.trials(), 0);
  EXPECT_EQ(second.compiles(), 0);
  EXPECT_EQ(pool_.compiles(), compiles);
  EXPECT_EQ(device_.Count("trial"), trials);
  EXPECT_EQ(second.rows(0).before_us(), 40);
  EXPECT_EQ(second.rows(0).after_us(), 40);
  EXPECT_THAT(second.markdown(), HasSubstr("2 SAME"));
}

TEST_F(SweepTest, ASlowerIncumbentIsConfirmedReportedAndStillServed) {
  Scale(1);
  Start();
  Sweep(Request());
  Scale(1.05);
  const int play_offs = device_.Count("play-off");
  const v1::SweepReport report = Sweep(Request());
  EXPECT_THAT(Outcomes(report), Each(v1::SweepReport::OUTCOME_SLOWER));
  EXPECT_TRUE(report.regression());
  EXPECT_EQ(device_.Count("play-off") - play_offs, 6);  // three cycles each
  EXPECT_TRUE(
      absl::StrContains(store_.GetIncumbent(kProblem, "cuda:0", v1::POLICY_HOT)->trial().variant().text(), "BLOCK=32"));
  // Nothing has changed: it is reported again.
  EXPECT_TRUE(Sweep(Request()).regression());
}

TEST_F(SweepTest, ASlowDownThatDoesNotComeBackIsNone) {
  Scale(1);
  Start();
  Sweep(Request());
  std::atomic<int> calls = 0;
  device_.ScriptPlayOff([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    if (++calls == 1) *response.mutable_results(0)->mutable_timing() = supervisor::TimingOf(60);
    return response;
  });
  EXPECT_THAT(Outcomes(Sweep(Request())), Each(v1::SweepReport::OUTCOME_SAME));
  EXPECT_EQ(calls, 3);
}

TEST_F(SweepTest, AFasterIncumbentIsServedWithItsNewTime) {
  Scale(1);
  Start();
  Sweep(Request());
  Scale(0.9);
  EXPECT_THAT(Outcomes(Sweep(Request())), Each(v1::SweepReport::OUTCOME_FASTER));
  EXPECT_DOUBLE_EQ(store_.GetIncumbent(kProblem, "cuda:0", v1::POLICY_HOT)->trial().timing().median_us(), 36);
  EXPECT_THAT(Outcomes(Sweep(Request())), Each(v1::SweepReport::OUTCOME_SAME));
}

TEST_F(SweepTest, ADriverThatSlowsThingsDownIsSeenThoughAllIsTunedAnew) {
  Scale(1);
  Start();
  Sweep(Request());
  device_.set_driver("999.9");
  Scale(1.1);
  Start();
  const v1::SweepReport report = Sweep(Request());
  EXPECT_THAT(Outcomes(report), Each(v1::SweepReport::OUTCOME_SLOWER));
  EXPECT_EQ(report.trials(), 12);
  EXPECT_EQ(report.compiles(), 0);  // code does not depend on the driver
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("driver"));
  EXPECT_EQ(store_.GetIncumbent(kProblem, "cuda:0", v1::POLICY_HOT)->trial().dependencies().driver(), "999.9");
}

TEST_F(SweepTest, OnlyVariantsNeverTriedAreTried) {
  Scale(1);
  Start(Families(SearchFamily("source one", "16, 64")));
  Sweep(Request());
  Start(Families(SearchFamily("source one", "16, 32, 64")));  // as if the manifest did not count
  const v1::SweepReport report = Sweep(Request());
  EXPECT_THAT(Outcomes(report), Each(v1::SweepReport::OUTCOME_FASTER));
  EXPECT_EQ(report.trials(), 4);
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 1)));
}

TEST_F(SweepTest, ABudgetOfTrialsDrawsTheSameEveryNight) {
  Scale(1);
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_budget()->set_trials_per_problem(2);
  EXPECT_EQ(Sweep(request).trials(), 4);
  const v1::SweepReport second = Sweep(request);
  EXPECT_EQ(second.trials(), 0);
  EXPECT_THAT(Outcomes(second), Each(v1::SweepReport::OUTCOME_SAME));
}

TEST_F(SweepTest, OneProblemThatFailsLeavesTheOthersUnharmed) {
  Scale(1);
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_shapes(0)->set_problem(0, "b1.h1.q4096.d64.f16");
  const v1::SweepReport report = Sweep(request);
  EXPECT_THAT(Outcomes(report), ::testing::ElementsAre(v1::SweepReport::OUTCOME_FAILED, v1::SweepReport::OUTCOME_NEW));
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("no kernel family applies"));
}

TEST_F(SweepTest, WhatTheTimeDoesNotReachIsSkipped) {
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_budget()->mutable_total_time()->set_seconds(0);
  EXPECT_THAT(Outcomes(Sweep(request)), Each(v1::SweepReport::OUTCOME_SKIPPED));
}

TEST_F(SweepTest, TheTotalTimeIsOfAClockThatNobodySets) {
  std::atomic<int> hours = 0;
  clock_ = [&] { return absl::Hours(hours.load()); };
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    ++hours;
    return device_.Good(request.candidate());
  });
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_budget()->mutable_total_time()->set_seconds(3600);
  EXPECT_THAT(Outcomes(Sweep(request)),
              ::testing::ElementsAre(v1::SweepReport::OUTCOME_NEW, v1::SweepReport::OUTCOME_SKIPPED));
}

TEST_F(SweepTest, AResumedSweepGoesOnBehindItsRows) {
  Scale(1);
  v1::SweepRequest request = Request();
  store::Job job;
  job.name = "operations/old";
  job.kind = store::JobKind::kSweep;
  job.request = request.SerializeAsString();
  job.operation.set_name(job.name);
  v1::SweepReport::Row& row = *job.operation.mutable_sweep()->add_rows();
  row.set_problem(kProblem);
  row.set_outcome(v1::SweepReport::OUTCOME_SAME);
  ASSERT_TRUE(store_.CreateJob(job).ok());
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  const v1::Operation done = Await(job.name);
  EXPECT_THAT(Outcomes(done.sweep()),
              ::testing::ElementsAre(v1::SweepReport::OUTCOME_SAME, v1::SweepReport::OUTCOME_NEW));
  EXPECT_THAT(Tries(), SizeIs(0));
}

TEST_F(SweepTest, ItsProgressCountsProblems) {
  Scale(1);
  // The second problem's trials wait until its progress was seen.
  std::promise<void> seen;
  std::shared_future<void> released = seen.get_future().share();
  std::atomic<int> trials = 0;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (++trials > 6) released.wait();
    return device_.Good(request.candidate());
  });
  Start();
  const std::string name = tuner_->Sweep(Request())->name();
  const v1::OperationProgress second =
      Await(name, [](const v1::Operation& operation) { return operation.progress().problems_done() == 1; }).progress();
  EXPECT_EQ(second.problems_total(), 2);
  EXPECT_TRUE(second.has_eta()) << "from the first problem's time";
  seen.set_value();
  EXPECT_EQ(Await(name).progress().problems_done(), 2);
}

TEST_F(SweepTest, APlanSaysWhatASweepWouldDoAndStartsNothing) {
  Scale(1);
  Start();
  Tune();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_shapes(0)->add_problem("b1.h1.q4096.d64.f16");
  const int compiles = pool_.compiles();
  const absl::StatusOr<v1::PlanSweepResponse> plan = tuner_->PlanSweep(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->device_id(), "cuda:0");
  ASSERT_EQ(plan->rows_size(), 3);
  EXPECT_EQ(plan->rows(0).problem(), kProblem);
  EXPECT_TRUE(plan->rows(0).tuned());
  EXPECT_EQ(plan->rows(0).known(), 6);
  EXPECT_EQ(plan->rows(0).trials(), 0);
  EXPECT_FALSE(plan->rows(1).tuned());
  EXPECT_EQ(plan->rows(1).variants(), 6);
  EXPECT_EQ(plan->rows(1).trials(), 6);
  EXPECT_EQ(plan->rows(1).compiles(), 3);
  EXPECT_THAT(plan->rows(2).reason(), HasSubstr("no kernel family applies"));
  EXPECT_EQ(plan->variants(), 12);
  EXPECT_EQ(plan->known(), 6);
  EXPECT_EQ(plan->trials(), 6);
  EXPECT_EQ(plan->compiles(), 3);
  EXPECT_TRUE(plan->has_estimate());
  EXPECT_EQ(pool_.compiles(), compiles);
  EXPECT_EQ(store_.UnfinishedJobs()->size(), 0);

  request.mutable_plan()->mutable_budget()->set_trials_per_problem(2);
  EXPECT_EQ(tuner_->PlanSweep(request)->trials(), 2) << "as the budget allows";
  EXPECT_EQ(Sweep(Request()).trials(), 6) << "as planned";
}

TEST_F(SweepTest, AProblemThatDoesNotFitIsItsRowsReasonInAPlan) {
  Scale(1);
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_shapes(0)->add_problem("b1000.h100.q1000.d64.f16");
  const absl::StatusOr<v1::PlanSweepResponse> plan = tuner_->PlanSweep(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->rows_size(), 3);
  EXPECT_EQ(plan->rows(0).trials(), 6);
  EXPECT_EQ(plan->rows(2).problem(), "b1000.h100.q1000.d64.f16");
  EXPECT_THAT(plan->rows(2).reason(), HasSubstr("memory"));
  EXPECT_EQ(plan->trials(), 12);
}

TEST_F(SweepTest, APlanThatNobodyWaitsForEnds) {
  Start();
  EXPECT_TRUE(absl::IsCancelled(tuner_->PlanSweep(Request(), [] { return true; }).status()));
}

TEST_F(SweepTest, APlanThatTakesTooLongIsRefused) {
  clock_ = [asked = std::make_shared<std::atomic<int>>(0)] { return absl::Seconds(31) * (*asked)++; };
  Start();
  const absl::Status status = tuner_->PlanSweep(Request()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("0 of 2 problems; plan fewer at once"));
}

TEST_F(SweepTest, ABadPlanIsRefusedAtOnce) {
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_shapes(0)->add_problem("nonsense");
  const absl::Status status = tuner_->Sweep(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("shapes[0].problem[2]"));
}

}  // namespace
}  // namespace attune::jobs
