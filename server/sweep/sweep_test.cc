// Sweeps over a whole tuner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "server/jobs/testing/tuner_fixture.h"
#include "server/store/testing/unfinished.h"
#include "server/sweep/plan_sweep.h"
#include "server/sweep/sweep_job.h"

namespace attune::sweep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

class SweepTest : public jobs::TunerTest {
 protected:
  v1::SweepRequest Request() {
    v1::SweepRequest request;
    request.mutable_plan()->set_title("nightly");
    request.mutable_plan()->set_device_id("cuda:0");
    request.mutable_plan()->set_policy(v1::POLICY_HOT);
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

TEST_F(SweepTest, ReTimingPreparesEachProblemOnce) {
  Scale(1);
  Start();
  Sweep(Request());
  const int before = device_.preparations();
  Sweep(Request());
  EXPECT_EQ(device_.preparations() - before, 2);
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
      absl::StrContains(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->trial().variant().text(), "BLOCK=32"));
  // Nothing has changed: it is reported again.
  EXPECT_TRUE(Sweep(Request()).regression());
}

TEST_F(SweepTest, EveryReTimingStaysInTheHistoryAlsoWhereNothingIsFaster) {
  Scale(1);
  Start();
  Sweep(Request());
  const auto times = [this] {
    std::vector<double> medians;
    const auto page = store_.ListRetimings({.problem_text = kProblem}, 100, "");
    for (const v1::Retiming& retiming : page->items) {
      medians.push_back(retiming.timing().median_us());
    }
    return medians;
  };
  EXPECT_THAT(times(), ElementsAre(40)) << "of the play-off that promoted it";
  Sweep(Request());
  EXPECT_THAT(times(), ElementsAre(40, 40));
  Scale(1.05);
  Sweep(Request());
  EXPECT_THAT(times(), ElementsAre(42, 42, 42, 40, 40)) << "a regression is confirmed in three cycles";
  const v1::Retiming newest = store_.ListRetimings({.problem_text = kProblem}, 1, "")->items[0];
  EXPECT_THAT(newest.variant(), HasSubstr("BLOCK=32"));
  EXPECT_EQ(newest.device_id(), "cuda:0");
  EXPECT_EQ(newest.dependencies().device_fingerprint(), "an L4");
  EXPECT_THAT(newest.job(), HasSubstr("operations/"));
  EXPECT_GT(newest.finish_time().seconds(), 0);
}

TEST_F(SweepTest, ASlowDownThatDoesNotComeBackIsNone) {
  Scale(1);
  Start();
  Sweep(Request());
  std::atomic<int> calls = 0;
  device_.ScriptPlayOff([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    if (++calls <= 3) {  // the cycles of the first play-off
      for (double& us : *response.mutable_results(0)->mutable_rounds_us()) us = 60;
    }
    return response;
  });
  EXPECT_THAT(Outcomes(Sweep(Request())), Each(v1::SweepReport::OUTCOME_SAME));
  EXPECT_EQ(calls, 3 * 3);
}

TEST_F(SweepTest, AFasterIncumbentIsServedWithItsNewTime) {
  Scale(1);
  Start();
  Sweep(Request());
  Scale(0.9);
  EXPECT_THAT(Outcomes(Sweep(Request())), Each(v1::SweepReport::OUTCOME_FASTER));
  EXPECT_DOUBLE_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->trial().timing().median_us(), 36);
  EXPECT_THAT(Outcomes(Sweep(Request())), Each(v1::SweepReport::OUTCOME_SAME));
}

TEST_F(SweepTest, AFasterIncumbentKeepsTheAlternativesThatStillHold) {
  Scale(1);
  Start();
  Sweep(Request());
  v1::Incumbent served = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  const std::string name = served.name();
  for (const v1::Objective objective : {v1::OBJECTIVE_ENERGY, v1::OBJECTIVE_EDP}) {
    v1::Alternative& alternative = *served.add_alternatives();
    alternative.set_objective(objective);
    *alternative.mutable_trial() = served.trial();
    alternative.mutable_trial()->mutable_variant()->set_text("tiles:BLOCK=16,SPLITS=1");
  }
  served.mutable_alternatives(1)->mutable_trial()->mutable_dependencies()->set_driver("of last year");
  ASSERT_TRUE(store_.Promote(served, name, {}).ok());
  Scale(0.9);
  EXPECT_THAT(Outcomes(Sweep(Request())), Each(v1::SweepReport::OUTCOME_FASTER));
  served = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  ASSERT_THAT(served.alternatives(), SizeIs(1));
  EXPECT_EQ(served.alternatives(0).objective(), v1::OBJECTIVE_ENERGY);
}

TEST_F(SweepTest, AFasterTimeOfARetainedIncumbentIsTheOneThatIsServed) {
  device_.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
  Start(catalog::Families(catalog::SearchFamily("source one", "16, 64")));
  Sweep(Request());
  device_.ScriptUs([](const worker::v1::Candidate&) { return 50.0; });
  Start(catalog::Families(catalog::SearchFamily("source one", "16, 32, 64")));
  const v1::SweepReport report = Sweep(Request());
  EXPECT_THAT(Outcomes(report), Each(v1::SweepReport::OUTCOME_FASTER));
  const absl::StatusOr<v1::Incumbent> served = store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  EXPECT_EQ(report.rows(0).variant(), served->trial().variant().text());
  EXPECT_EQ(report.rows(0).after_us(), 50);
  EXPECT_EQ(served->timing().median_us(), 50);
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("served with this time from now on"));
}

TEST_F(SweepTest, WhatCyclesDoNotSettleHasTheTimeOfTheDecision) {
  device_.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
  Start(catalog::Families(catalog::SearchFamily("source one", "16, 64")));
  Sweep(Request());
  device_.ScriptUs([](const worker::v1::Candidate&) { return 90.0; });
  Start(catalog::Families(catalog::SearchFamily("source one", "16, 32, 64")));
  // Alone, in cycles, another process is on the device each time.
  device_.ScriptPlayOff([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    if (request.candidates_size() > 1) return response;
    *response.mutable_results(0)->mutable_timing() = supervisor::TimingOf(70);
    response.mutable_results(0)->mutable_timing()->set_contended(true);
    return response;
  });
  const v1::SweepReport report = Sweep(Request());
  EXPECT_THAT(Outcomes(report), Each(v1::SweepReport::OUTCOME_AMBIGUOUS));
  EXPECT_EQ(report.rows(0).after_us(), 90);
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("retained at 90.00 us"));
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->timing().median_us(), 100);
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
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->trial().dependencies().driver(), "999.9");
}

TEST_F(SweepTest, OnlyVariantsNeverTriedAreTried) {
  Scale(1);
  Start(catalog::Families(catalog::SearchFamily("source one", "16, 64")));
  Sweep(Request());
  Start(catalog::Families(catalog::SearchFamily("source one", "16, 32, 64")));  // as if the manifest did not count
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
  const v1::Operation sweep = AwaitStarted(tuner_->Sweep(request));
  const v1::SweepReport& report = sweep.sweep();
  EXPECT_THAT(Outcomes(report), ::testing::ElementsAre(v1::SweepReport::OUTCOME_FAILED, v1::SweepReport::OUTCOME_NEW));
  EXPECT_THAT(report.rows(0).detail(), HasSubstr("no kernel family applies"));
  EXPECT_EQ(report.rows(0).device_id(), "cuda:0");
  EXPECT_EQ(sweep.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(sweep.progress().message(), "1 of 2 problems FAILED");
}

TEST_F(SweepTest, ThePartOfAProblemThatFailsFails) {
  Scale(1);
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_shapes(0)->set_problem(0, "b1.h1.q4096.d64.f16");
  const v1::Operation sweep = AwaitStarted(tuner_->Sweep(request));
  const std::vector<v1::Operation> parts = store_.queue().List({.parent = sweep.name()}, 10, "")->items;
  ASSERT_THAT(parts, SizeIs(2));
  const auto failed = std::find_if(parts.begin(), parts.end(), [](const auto& part) { return part.has_error(); });
  ASSERT_NE(failed, parts.end());
  EXPECT_EQ(failed->problem(), "b1.h1.q4096.d64.f16");
  EXPECT_EQ(failed->state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(failed->error().message(), HasSubstr("no kernel family applies"));
  EXPECT_EQ(failed->progress().message(), failed->error().message());
  EXPECT_EQ(std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part.has_error(); }), 1);
}

TEST_F(SweepTest, AProblemWithoutARightVariantFails) {
  device_.ScriptTrial([](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response;
    response.set_verdict(v1::VERDICT_WRONG_RESULT);
    return response;
  });
  Start();
  const v1::Operation sweep = AwaitStarted(tuner_->Sweep(Request()));
  EXPECT_EQ(sweep.sweep().trials(), 12);
  EXPECT_EQ(sweep.state(), v1::Operation::STATE_FAILED) << "as every problem of it";
  EXPECT_THAT(sweep.error().message(), HasSubstr("2 of 2 problems FAILED; the first, b1.h1.q128.d64.f16: no variant"));
  EXPECT_EQ(sweep.progress().message(), sweep.error().message());
  const std::vector<v1::Operation> parts = store_.queue().List({.parent = sweep.name()}, 10, "")->items;
  ASSERT_THAT(parts, SizeIs(2));
  for (const v1::Operation& part : parts) {
    EXPECT_EQ(part.state(), v1::Operation::STATE_FAILED);
    EXPECT_EQ(part.sweep().rows_size(), 1) << "what was tried counts";
    EXPECT_THAT(part.error().message(), HasSubstr("no variant is right"));
  }
}

TEST_F(SweepTest, WhatTheTimeDoesNotReachIsSkipped) {
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_budget()->mutable_total_time()->set_seconds(0);
  const v1::Operation done = AwaitStarted(tuner_->Sweep(request));
  EXPECT_THAT(Outcomes(done.sweep()), Each(v1::SweepReport::OUTCOME_SKIPPED));
  EXPECT_THAT(done.progress().message(), HasSubstr("2 of 2 problems SKIPPED: the sweep's total time was spent"));
  EXPECT_THAT(done.sweep().markdown(), HasSubstr("2 of 2 problems SKIPPED"));
}

TEST_F(SweepTest, WhatItReachesNeedsNoWordOfSkipping) {
  Start();
  const v1::Operation done = AwaitStarted(tuner_->Sweep(Request()));
  EXPECT_EQ(done.progress().message(), "done");
  EXPECT_FALSE(absl::StrContains(done.sweep().markdown(), "SKIPPED"));
}

TEST_F(SweepTest, TheTotalTimeBeginsWhenItGetsTheDevice) {
  std::atomic<int> hours = 0;
  clock_ = [&] { return absl::Hours(hours.load()); };
  std::promise<void> waiting;
  std::shared_future<void> released = waiting.get_future().share();
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    released.wait();
    return device_.Good(request.candidate());
  });
  Start();
  const std::string tune = tuner_->Tune(TuneRequest("b1.h1.q512.d64.f16"))->name();
  AwaitPhase(tune, v1::OperationProgress::PHASE_TRIALS);
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_budget()->mutable_total_time()->set_seconds(3600);
  const std::string sweep = tuner_->Sweep(request)->name();
  Await(sweep, [](const v1::Operation& operation) { return operation.progress().queue_position() > 0; });
  hours = 5;
  waiting.set_value();
  EXPECT_THAT(Outcomes(Await(sweep).sweep()), Each(v1::SweepReport::OUTCOME_NEW));
  Await(tune);
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
  ASSERT_TRUE(store_.queue().Create(job, {}).ok());
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
  clock_ = [&] { return absl::Seconds(trials.load()); };
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
  const absl::StatusOr<v1::PlanSweepResponse> plan = PlanSweep(request.plan(), host_, *results_, store_);
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
  EXPECT_EQ(store::CountUnfinished(store_.queue()), 0);

  request.mutable_plan()->mutable_budget()->set_trials_per_problem(2);
  EXPECT_EQ(PlanSweep(request.plan(), host_, *results_, store_)->trials(), 2) << "as the budget allows";
  EXPECT_EQ(Sweep(Request()).trials(), 6) << "as planned";

  request.mutable_plan()->clear_budget();
  const absl::StatusOr<v1::PlanSweepResponse> again = PlanSweep(request.plan(), host_, *results_, store_);
  EXPECT_EQ(again->trials(), 0);
  EXPECT_GT(again->estimate().seconds() * 1e9 + again->estimate().nanos(), 0) << "for timing two incumbents again";
}

TEST_F(SweepTest, AProblemThatDoesNotFitIsItsRowsReasonInAPlan) {
  Scale(1);
  Start();
  v1::SweepRequest request = Request();
  request.mutable_plan()->mutable_shapes(0)->add_problem("b1000.h100.q1000.d64.f16");
  const absl::StatusOr<v1::PlanSweepResponse> plan = PlanSweep(request.plan(), host_, *results_, store_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->rows_size(), 3);
  EXPECT_EQ(plan->rows(0).trials(), 6);
  EXPECT_EQ(plan->rows(2).problem(), "b1000.h100.q1000.d64.f16");
  EXPECT_THAT(plan->rows(2).reason(), HasSubstr("memory"));
  EXPECT_EQ(plan->trials(), 12);
}

TEST_F(SweepTest, APlanThatNobodyWaitsForEnds) {
  Start();
  const auto plan = PlanSweep(Request().plan(), host_, *results_, store_, [] { return true; });
  EXPECT_TRUE(absl::IsCancelled(plan.status()));
}

TEST_F(SweepTest, APlanThatTakesTooLongIsRefused) {
  Start();
  const Clock slow = [asked = std::make_shared<std::atomic<int>>(0)] { return absl::Seconds(31) * (*asked)++; };
  const absl::Status status = PlanSweep(Request().plan(), host_, *results_, store_, nullptr, slow).status();
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
}  // namespace attune::sweep
