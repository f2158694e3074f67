// Sweeps over several cards: their problems are jobs that any free card of a class takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <future>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/jobs/parts.h"
#include "server/jobs/testing/tuner_fixture.h"
#include "server/sweep/plan_sweep.h"

namespace attune::sweep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr int kTrialsAProblem = 6;

class SweepCardsTest : public jobs::TunerTest {
 protected:
  using Trying = supervisor::FakeDeviceWorker::Trying;

  static v1::Device Card(const std::string& fingerprint) {
    v1::Device device = catalog::FakeDevice();
    device.set_id("cuda:1");
    device.set_uuid("GPU-1");
    device.set_fingerprint(fingerprint);
    return device;
  }
  static std::string ProblemOf(int number) { return absl::StrCat("b1.h", number, ".q128.d64.f16"); }

  static v1::SweepRequest Request(const std::string& cards, int problems) {
    v1::SweepRequest request;
    request.mutable_plan()->set_device_id(cards);
    request.mutable_plan()->set_policy(v1::POLICY_HOT);
    v1::SweepShapes& shapes = *request.mutable_plan()->add_shapes();
    for (int i = 1; i <= problems; ++i) shapes.add_problem(ProblemOf(i));
    return request;
  }
  v1::SweepReport Sweep(const v1::SweepRequest& request) {
    const v1::Operation done = AwaitStarted(tuner_->Sweep(request));
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
    return done.sweep();
  }
  void StartTwo(supervisor::FakeDeviceWorker& other) {
    others_ = {&other};
    Start();
  }
  // Both cards stand at the first trial of each of their problems until the other does.
  void KeepInStep(std::barrier<>& both) {
    for (supervisor::FakeDeviceWorker* card : {&device_, &sister_}) {
      card->ScriptTrial([&both, card, trials = std::make_shared<std::atomic<int>>(0)](
                            const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
        if ((*trials)++ % kTrialsAProblem == 0) both.arrive_and_wait();
        return card->Good(request.candidate());
      });
    }
  }
  static std::multiset<std::string> CardsOf(const v1::SweepReport& report) {
    std::multiset<std::string> cards;
    for (const v1::SweepReport::Row& row : report.rows()) cards.insert(row.device_id());
    return cards;
  }
  std::vector<v1::Operation> PartsOf(const std::string& sweep) {
    return store_.queue().List({.parent = sweep}, 100, "")->items;
  }
  // As often as each problem's variants were tried, on any card.
  std::map<std::string, int> TriesOfAll() {
    std::map<std::string, int> tries;
    for (const v1::Trial& trial : store_.trials()) {
      ++tries[absl::StrCat(trial.problem_text(), " ", trial.variant().text())];
    }
    return tries;
  }

  supervisor::FakeDeviceWorker sister_{Card("an L4")};
  supervisor::FakeDeviceWorker stranger_{Card("an H200")};
};

TEST_F(SweepCardsTest, CardsOfAClassWorkSideBySideAndTuneEachProblemOnce) {
  std::barrier both(2);
  KeepInStep(both);
  StartTwo(sister_);
  const v1::SweepReport report = Sweep(Request("l4", 6));
  EXPECT_EQ(report.device_id(), "cuda:0,cuda:1");
  ASSERT_THAT(report.rows(), SizeIs(6));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(report.rows(i).problem(), ProblemOf(i + 1)) << "in the plan's order";
    EXPECT_EQ(report.rows(i).outcome(), v1::SweepReport::OUTCOME_NEW);
    EXPECT_EQ(report.rows(i).trials(), kTrialsAProblem);
  }
  EXPECT_THAT(CardsOf(report), UnorderedElementsAre("cuda:0", "cuda:0", "cuda:0", "cuda:1", "cuda:1", "cuda:1"));
  EXPECT_THAT(TriesOfAll(), Each(Pair(::testing::_, 1)));
  EXPECT_EQ(report.trials(), 36);
}

TEST_F(SweepCardsTest, TheSecondNightTimesEachIncumbentOnTheCardThatTimedIt) {
  std::barrier both(2);
  KeepInStep(both);
  StartTwo(sister_);
  const v1::SweepReport first = Sweep(Request("l4", 4));
  const v1::SweepReport second = Sweep(Request("all", 4));
  ASSERT_THAT(second.rows(), SizeIs(4));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(second.rows(i).outcome(), v1::SweepReport::OUTCOME_SAME);
    EXPECT_EQ(second.rows(i).device_id(), first.rows(i).device_id());
  }
  EXPECT_EQ(second.trials(), 0);
}

TEST_F(SweepCardsTest, ACardThatIsNamedAloneDoesAll) {
  StartTwo(sister_);
  EXPECT_THAT(CardsOf(Sweep(Request("cuda:1", 3))), Each("cuda:1"));
}

TEST_F(SweepCardsTest, EachClassTunesEachProblem) {
  StartTwo(stranger_);
  const v1::SweepReport report = Sweep(Request("cuda:1, cuda:0", 2));
  EXPECT_EQ(report.device_id(), "cuda:0,cuda:1");
  std::vector<std::pair<std::string, std::string>> done;
  for (const v1::SweepReport::Row& row : report.rows()) done.emplace_back(row.device_id(), row.problem());
  EXPECT_THAT(done, ElementsAre(Pair("cuda:0", ProblemOf(1)), Pair("cuda:0", ProblemOf(2)),
                                Pair("cuda:1", ProblemOf(1)), Pair("cuda:1", ProblemOf(2))));
  EXPECT_EQ(report.trials(), 4 * kTrialsAProblem);
}

TEST_F(SweepCardsTest, TheSameCardsInOtherWordsAreTheSameSweep) {
  StartTwo(sister_);
  pool_.Hold();
  const auto first = tuner_->Sweep(Request("l4", 2));
  EXPECT_THAT(first->title(), HasSubstr("2 problems on cuda:0,cuda:1"));
  EXPECT_EQ(tuner_->Sweep(Request("all", 2))->name(), first->name());
  EXPECT_EQ(tuner_->Sweep(Request("GPU-1,cuda:0", 2))->name(), first->name());
  EXPECT_NE(tuner_->Sweep(Request("cuda:0", 2))->name(), first->name());
  pool_.Go();
  AwaitStarted(first);
}

TEST_F(SweepCardsTest, ProblemsAreJobsUnderTheirSweep) {
  StartTwo(sister_);
  const std::string sweep = AwaitStarted(tuner_->Sweep(Request("l4", 3))).name();
  const std::vector<v1::Operation> parts = PartsOf(sweep);
  ASSERT_THAT(parts, SizeIs(3));
  for (const v1::Operation& part : parts) {
    EXPECT_EQ(part.parent(), sweep);
    EXPECT_EQ(part.state(), v1::Operation::STATE_SUCCEEDED);
    EXPECT_EQ(part.progress().device_id(), part.sweep().device_id());
  }
  EXPECT_EQ(parts.back().problem(), ProblemOf(1));
  EXPECT_THAT(store_.queue().List({}, 100, "")->items, SizeIs(1)) << "the sweep alone";
}

TEST_F(SweepCardsTest, CancellingASweepCancelsItsProblems) {
  StartTwo(sister_);
  std::promise<void> go;
  const std::shared_future<void> released = go.get_future().share();
  for (supervisor::FakeDeviceWorker* card : {&device_, &sister_}) {
    card->ScriptTrial([=](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      released.wait();
      return card->Good(request.candidate());
    });
  }
  const std::string sweep = tuner_->Sweep(Request("l4", 8))->name();
  for (const int part : {0, 1}) {
    while (!store_.queue().Get(jobs::PartName(sweep, part)).ok()) std::this_thread::yield();
    Await(jobs::PartName(sweep, part), [](const v1::Operation& operation) {
      return operation.progress().phase() == v1::OperationProgress::PHASE_TRIALS;
    });
  }
  ASSERT_TRUE(tuner_->Cancel(sweep).ok());
  go.set_value();
  EXPECT_EQ(Await(sweep).state(), v1::Operation::STATE_CANCELLED);
  for (const v1::Operation& part : PartsOf(sweep)) {
    EXPECT_EQ(Await(part.name()).state(), v1::Operation::STATE_CANCELLED) << part.name();
  }
  EXPECT_THAT(PartsOf(sweep), SizeIs(2)) << "no further one was made";
}

TEST_F(SweepCardsTest, AResumedSweepTakesWhatItsProblemsHaveEndedWith) {
  const v1::SweepRequest request = Request("cuda:0,cuda:1", 3);
  const auto create = [&](const std::string& name, store::JobKind kind, const std::string& parent, int problem) {
    store::Job job;
    job.name = name;
    job.kind = kind;
    v1::SweepRequest of = request;
    if (problem > 0) {
      of.mutable_plan()->clear_shapes();
      of.mutable_plan()->add_shapes()->add_problem(ProblemOf(problem));
      job.operation.set_problem(ProblemOf(problem));
    }
    job.request = of.SerializeAsString();
    job.parent = parent;
    job.operation.set_name(name);
    job.operation.set_parent(parent);
    ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  };
  create("operations/old", store::JobKind::kSweep, "", 0);
  create("operations/old.1", store::JobKind::kSweepProblem, "operations/old", 2);
  create("operations/old.2", store::JobKind::kSweepProblem, "operations/old", 3);
  v1::Operation ended = store_.queue().Get("operations/old.1")->operation;
  ended.set_done(true);
  ended.set_state(v1::Operation::STATE_SUCCEEDED);
  v1::SweepReport::Row& row = *ended.mutable_sweep()->add_rows();
  row.set_problem(ProblemOf(2));
  row.set_outcome(v1::SweepReport::OUTCOME_FASTER);
  row.set_device_id("cuda:1");
  const auto leased = store_.queue().Lease("operations/old.1", "killed", absl::Minutes(1));
  ASSERT_TRUE(store_.queue().Finish({"operations/old.1", (*leased)->epoch}, ended).ok());
  StartTwo(sister_);
  ASSERT_TRUE(tuner_->Resume().ok());
  const v1::SweepReport report = Await("operations/old").sweep();
  ASSERT_THAT(report.rows(), SizeIs(3));
  EXPECT_EQ(report.rows(0).outcome(), v1::SweepReport::OUTCOME_NEW);
  EXPECT_EQ(report.rows(1).outcome(), v1::SweepReport::OUTCOME_FASTER);
  EXPECT_EQ(report.rows(2).outcome(), v1::SweepReport::OUTCOME_NEW);
  EXPECT_THAT(Tries(ProblemOf(2)), IsEmpty());
  EXPECT_THAT(PartsOf("operations/old"), SizeIs(3));
}

// Whose time was spent is not said of what was skipped.
TEST_F(SweepCardsTest, AResumedSweepOfTwoClassesFindsOutAnewWhatIsSkipped) {
  store::Job job;
  job.name = "operations/old";
  job.kind = store::JobKind::kSweep;
  job.request = Request("cuda:0,cuda:1", 2).SerializeAsString();
  job.operation.set_name(job.name);
  v1::SweepReport::Row& done = *job.operation.mutable_sweep()->add_rows();
  done.set_problem(ProblemOf(1));
  done.set_outcome(v1::SweepReport::OUTCOME_FASTER);
  done.set_device_id("cuda:1");
  v1::SweepReport::Row& skipped = *job.operation.mutable_sweep()->add_rows();
  skipped.set_problem(ProblemOf(2));
  skipped.set_outcome(v1::SweepReport::OUTCOME_SKIPPED);
  ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  StartTwo(stranger_);
  ASSERT_TRUE(tuner_->Resume().ok());
  const v1::SweepReport report = Await(job.name).sweep();
  std::vector<std::pair<std::string, v1::SweepReport::Outcome>> rows;
  for (const v1::SweepReport::Row& row : report.rows()) {
    rows.emplace_back(absl::StrCat(row.device_id(), " ", row.problem()), row.outcome());
  }
  EXPECT_THAT(rows, ElementsAre(Pair("cuda:0 " + ProblemOf(1), v1::SweepReport::OUTCOME_NEW),
                                Pair("cuda:0 " + ProblemOf(2), v1::SweepReport::OUTCOME_NEW),
                                Pair("cuda:1 " + ProblemOf(1), v1::SweepReport::OUTCOME_FASTER),
                                Pair("cuda:1 " + ProblemOf(2), v1::SweepReport::OUTCOME_NEW)));
}

TEST_F(SweepCardsTest, TheTotalTimeIsOfEachCard) {
  std::atomic<int> hours = 0;
  clock_ = [&] { return absl::Hours(hours.load()); };
  std::barrier both(2);
  KeepInStep(both);
  // One hour of each for every problem, in step.
  for (supervisor::FakeDeviceWorker* card : {&device_, &sister_}) {
    card->ScriptPlayOff(
        [&, card](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
          hours += 2;
          return card->GoodPlayOff(request);
        });
  }
  StartTwo(sister_);
  v1::SweepRequest request = Request("l4", 5);
  request.mutable_plan()->mutable_budget()->mutable_total_time()->set_seconds(3600);
  const v1::SweepReport report = Sweep(request);
  std::multiset<v1::SweepReport::Outcome> outcomes;
  for (const v1::SweepReport::Row& row : report.rows()) outcomes.insert(row.outcome());
  EXPECT_EQ(outcomes.count(v1::SweepReport::OUTCOME_NEW), 2U) << "one on each card";
  EXPECT_EQ(outcomes.count(v1::SweepReport::OUTCOME_SKIPPED), 3U);
}

TEST_F(SweepCardsTest, APlanSaysWhichCardsTakeAProblem) {
  std::barrier both(2);
  KeepInStep(both);
  StartTwo(sister_);
  const v1::SweepReport report = Sweep(Request("l4", 2));
  const auto plan = PlanSweep(Request("l4", 3).plan(), host_, *results_, store_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->device_id(), "cuda:0,cuda:1");
  ASSERT_THAT(plan->rows(), SizeIs(3));
  EXPECT_EQ(plan->rows(0).device_id(), report.rows(0).device_id());
  EXPECT_EQ(plan->rows(1).device_id(), report.rows(1).device_id());
  EXPECT_EQ(plan->rows(0).trials(), 0);
  EXPECT_EQ(plan->rows(2).device_id(), "cuda:0,cuda:1");
  EXPECT_EQ(plan->rows(2).trials(), kTrialsAProblem);
}

}  // namespace
}  // namespace attune::sweep
