// What a plan says of how its problems are searched, and by what they are best.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/jobs/testing/several_cards.h"
#include "server/jobs/testing/tuner_fixture.h"
#include "server/sweep/plan_sweep.h"

namespace attune::sweep {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class PlanSearchTest : public jobs::TunerTest {
 protected:
  void SetUp() override { device_.ScriptUs(jobs::UsOf); }
  void StartLarge() { Start(catalog::Families(catalog::SearchFamily("source one", jobs::Blocks()))); }

  static v1::SweepRequest Request(v1::Strategy::Kind strategy, v1::Strategy::Effort effort) {
    v1::SweepRequest request;
    v1::SweepPlan& plan = *request.mutable_plan();
    plan.set_device_id("cuda:0");
    plan.set_policy(v1::POLICY_HOT);
    plan.add_shapes()->add_problem(kProblem);
    plan.set_strategy(strategy);
    plan.set_effort(effort);
    return request;
  }
  static v1::SweepRequest Quick() { return Request(v1::Strategy::KIND_GUIDED, v1::Strategy::EFFORT_QUICK); }
  v1::SweepReport::Row Sweep(const v1::SweepRequest& request) {
    const v1::Operation done = AwaitStarted(tuner_->Sweep(request));
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
    return done.sweep().rows_size() == 1 ? done.sweep().rows(0) : v1::SweepReport::Row();
  }
  int64_t Planned(const v1::SweepRequest& request) {
    const absl::StatusOr<v1::PlanSweepResponse> plan = PlanSweep(request.plan(), host_, *results_, store_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->trials() : -1;
  }
  // As if the search of what is served had said that nothing of so many variants is much better.
  void Claim(double confidence, int64_t of) {
    v1::Incumbent served = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
    const std::string name = served.name();
    served.mutable_claim()->set_confidence(confidence);
    served.mutable_claim()->set_of(of);
    ASSERT_TRUE(store_.Promote(served, name, {}).ok());
    StartLarge();
  }
};

TEST_F(PlanSearchTest, AGuidedNightTriesWhatItsEffortAllowsAndTheNextNothing) {
  StartLarge();
  EXPECT_EQ(Planned(Quick()), 24);
  const v1::SweepReport::Row first = Sweep(Quick());
  EXPECT_EQ(first.outcome(), v1::SweepReport::OUTCOME_NEW);
  EXPECT_EQ(first.trials(), 24);
  EXPECT_EQ(Planned(Quick()), 0);
  const v1::SweepReport::Row second = Sweep(Quick());
  EXPECT_EQ(second.outcome(), v1::SweepReport::OUTCOME_SAME);
  EXPECT_EQ(second.trials(), 0);
}

TEST_F(PlanSearchTest, EvolutionKeepsItsEffortToo) {
  StartLarge();
  const v1::SweepRequest request = Request(v1::Strategy::KIND_EVOLUTION, v1::Strategy::EFFORT_QUICK);
  EXPECT_EQ(Sweep(request).trials(), 24);
  EXPECT_EQ(Sweep(request).trials(), 0);
}

TEST_F(PlanSearchTest, ANightThatWasCutOffIsGoneOnWith) {
  StartLarge();
  v1::SweepRequest few = Quick();
  few.mutable_plan()->mutable_budget()->set_trials_per_problem(10);
  EXPECT_EQ(Sweep(few).trials(), 10);
  EXPECT_EQ(Planned(Quick()), 14);
  EXPECT_EQ(Sweep(Quick()).trials(), 14);
  EXPECT_EQ(Sweep(Quick()).trials(), 0);
}

TEST_F(PlanSearchTest, WhatAFormerSearchClaimedMayBeEnough) {
  const v1::SweepRequest request = Request(v1::Strategy::KIND_GUIDED, v1::Strategy::EFFORT_STANDARD);
  StartLarge();
  Sweep(Quick());
  Claim(0.95, jobs::kVariants);
  EXPECT_EQ(Planned(request), 0);
  EXPECT_EQ(Sweep(request).trials(), 0);
  Claim(0.95, jobs::kVariants - 1);
  EXPECT_EQ(Planned(request), 24) << "of another space";
  Claim(0.94, jobs::kVariants);
  EXPECT_EQ(Planned(request), 24) << "it was not sure";
  EXPECT_THAT(Sweep(request).trials(), AllOf(Gt(0), Le(24)));
}

TEST_F(PlanSearchTest, AnObjectiveKeepsTheBestByIt) {
  device_.set_counts_energy(true);
  Start();
  SetTimes({{"32/8", 40}, {"16/8", 50}});
  device_.ScriptJoules([](const worker::v1::Candidate& one) { return jobs::Seen(one) == "16/8" ? 0.01 : 0.1; });
  v1::SweepRequest request = Request(v1::Strategy::KIND_UNSPECIFIED, v1::Strategy::EFFORT_UNSPECIFIED);
  EXPECT_EQ(Sweep(request).outcome(), v1::SweepReport::OUTCOME_NEW);
  const v1::Incumbent before = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  EXPECT_THAT(before.alternatives(), IsEmpty());

  SetTimes({{"32/8", 40.1}, {"16/8", 50}});
  request.mutable_plan()->set_objective(v1::OBJECTIVE_ENERGY);
  const v1::SweepReport::Row measured = Sweep(request);
  EXPECT_EQ(measured.trials(), 0) << "what was tried is known";
  EXPECT_THAT(measured.detail(), HasSubstr("its energy was never measured"));
  const v1::Incumbent served = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  EXPECT_EQ(served.trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(served.trial().name(), before.trial().name());
  EXPECT_EQ(served.timing().median_us(), before.timing().median_us()) << "what nights are compared with does not drift";
  EXPECT_DOUBLE_EQ(served.timing().energy().joules(), 0.1);
  ASSERT_THAT(served.alternatives(), SizeIs(2));
  EXPECT_EQ(served.alternatives(0).trial().variant().text(), "tiles:BLOCK=16,SPLITS=1");

  EXPECT_EQ(Sweep(request).outcome(), v1::SweepReport::OUTCOME_SAME);
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->name(), served.name()) << "only timed again";
}

TEST_F(PlanSearchTest, AnObjectiveByEnergyWantsCardsThatCountIt) {
  Start();
  v1::SweepRequest request = Quick();
  request.mutable_plan()->set_objective(v1::OBJECTIVE_EDP);
  const absl::Status status = tuner_->Sweep(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("objective is OBJECTIVE_EDP, and cuda:0"));
}

}  // namespace
}  // namespace attune::sweep
