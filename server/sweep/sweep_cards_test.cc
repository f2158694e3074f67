// Sweeps over several cards: their problems are jobs that any free card of a class takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/deadline.h"
#include "server/jobs/parts.h"
#include "server/jobs/testing/tuner_fixture.h"
#include "server/sweep/plan_sweep.h"
#include "server/sweep/sweep_problem_job.h"

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

// Of some threads, again and again. One that waits for a minute fails the test, and none waits afterwards.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}

  void Meet() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int meeting = arrivals_++ / threads_;
    changed_.notify_all();
    const bool met = failed_ || changed_.wait_for(lock, std::chrono::minutes(1),
                                                  [&] { return failed_ || arrivals_ >= threads_ * (meeting + 1); });
    if (!met) failed_ = true;
    EXPECT_TRUE(met) << "another card has not come";
    changed_.notify_all();
  }

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrivals_ = 0;
  bool failed_ = false;
};

class SweepCardsTest : public jobs::TunerTest {
 protected:
  using Trying = supervisor::FakeDeviceWorker::Trying;

  static v1::Device Card(const std::string& fingerprint, int number = 1) {
    v1::Device device = catalog::FakeDevice();
    device.set_id(absl::StrCat("cuda:", number));
    device.set_uuid(absl::StrCat("GPU-", number));
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
  void KeepInStep() { KeepInStep({&device_, &sister_}, both_); }
  static void KeepInStep(const std::vector<supervisor::FakeDeviceWorker*>& cards, Meeting& all) {
    for (supervisor::FakeDeviceWorker* card : cards) {
      card->ScriptTrial([&all, card, trials = std::make_shared<std::atomic<int>>(0)](
                            const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
        if ((*trials)++ % kTrialsAProblem == 0) all.Meet();
        return card->Good(request.candidate());
      });
    }
  }
  // Both cards stand at each trial until the promise is kept.
  void HoldTrials(const std::shared_future<void>& released) {
    for (supervisor::FakeDeviceWorker* card : {&device_, &sister_}) {
      card->ScriptTrial([=](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
        EXPECT_EQ(released.wait_for(kPatience), std::future_status::ready);
        return card->Good(request.candidate());
      });
    }
  }
  // "card problem" and outcome.
  static std::vector<std::pair<std::string, v1::SweepReport::Outcome>> RowsOf(const v1::SweepReport& report) {
    std::vector<std::pair<std::string, v1::SweepReport::Outcome>> rows;
    for (const v1::SweepReport::Row& row : report.rows()) {
      rows.emplace_back(absl::StrCat(row.device_id(), " ", row.problem()), row.outcome());
    }
    return rows;
  }
  static std::multiset<std::string> CardsOf(const v1::SweepReport& report) {
    std::multiset<std::string> cards;
    for (const v1::SweepReport::Row& row : report.rows()) cards.insert(row.device_id());
    return cards;
  }
  std::vector<v1::Operation> PartsOf(const std::string& sweep) {
    return store_.queue().List({.parent = sweep}, 100, "")->items;
  }
  // Once there are so many, newest first.
  std::vector<v1::Operation> AwaitParts(const std::string& sweep, size_t count) {
    const Deadline deadline = After(absl::FromChrono(kPatience));
    while (PartsOf(sweep).size() < count && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_THAT(PartsOf(sweep), SizeIs(count));
    return PartsOf(sweep);
  }
  // Puts a sweep, or with a parent a part of it, into the queue as an earlier process did.
  void Create(const std::string& name, const v1::SweepRequest& request, const std::string& parent = "") {
    store::Job job;
    job.name = name;
    job.kind = parent.empty() ? store::JobKind::kSweep : store::JobKind::kSweepProblem;
    job.request = request.SerializeAsString();
    job.parent = parent;
    job.operation.set_name(name);
    job.operation.set_parent(parent);
    if (!parent.empty()) job.operation.set_problem(request.plan().shapes(0).problem(0));
    ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  }
  // A request for one problem, as a part has it.
  static v1::SweepRequest OneOf(const v1::SweepRequest& sweep, int problem, const std::string& cards) {
    v1::SweepRequest one = sweep;
    one.mutable_plan()->set_device_id(cards);
    one.mutable_plan()->clear_shapes();
    one.mutable_plan()->add_shapes()->add_problem(ProblemOf(problem));
    return one;
  }
  // Ends the part as one that an earlier process found FASTER on `card`.
  void EndFaster(const std::string& part, int problem, const std::string& card) {
    v1::Operation ended = store_.queue().Get(part)->operation;
    ended.set_done(true);
    ended.set_state(v1::Operation::STATE_SUCCEEDED);
    *ended.mutable_sweep()->add_rows() = Faster(problem, card);
    const auto leased = store_.queue().Lease(part, "killed", absl::Minutes(1));
    ASSERT_TRUE(store_.queue().Finish({part, (*leased)->epoch}, ended).ok());
  }
  static v1::SweepReport::Row Faster(int problem, const std::string& card) {
    v1::SweepReport::Row row;
    row.set_problem(ProblemOf(problem));
    row.set_outcome(v1::SweepReport::OUTCOME_FASTER);
    row.set_device_id(card);
    return row;
  }
  // As often as each problem's variants were tried, on any card.
  std::map<std::string, int> TriesOfAll() {
    std::map<std::string, int> tries;
    for (const v1::Trial& trial : store_.trials()) {
      ++tries[absl::StrCat(trial.problem_text(), " ", trial.variant().text())];
    }
    return tries;
  }

  Meeting both_{2};
  supervisor::FakeDeviceWorker sister_{Card("an L4")};
  supervisor::FakeDeviceWorker stranger_{Card("an H200")};
};

TEST_F(SweepCardsTest, CardsOfAClassWorkSideBySideAndTuneEachProblemOnce) {
  KeepInStep();
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

// How long that takes of one card's time: sweep_time --cards=4.
TEST_F(SweepCardsTest, NoneOfFourCardsIsIdleWhileProblemsWait) {
  supervisor::FakeDeviceWorker third(Card("an L4", 2));
  supervisor::FakeDeviceWorker fourth(Card("an L4", 3));
  Meeting all(4);
  KeepInStep({&device_, &sister_, &third, &fourth}, all);
  others_ = {&sister_, &third, &fourth};
  Start();
  const v1::SweepReport report = Sweep(Request("l4", 40));
  std::map<std::string, int> problems;
  for (const v1::SweepReport::Row& row : report.rows()) ++problems[row.device_id()];
  EXPECT_THAT(problems, ElementsAre(Pair("cuda:0", 10), Pair("cuda:1", 10), Pair("cuda:2", 10), Pair("cuda:3", 10)));
  EXPECT_THAT(TriesOfAll(), Each(Pair(::testing::_, 1)));
  tuning_.reset();  // before the cards
}

TEST_F(SweepCardsTest, TheSecondNightTimesEachIncumbentOnTheCardThatTimedIt) {
  KeepInStep();
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

TEST_F(SweepCardsTest, WhatAnotherCardTimedHasMovedAndIsComparedFromThenOn) {
  StartTwo(sister_);
  Sweep(Request("cuda:0", 1));
  const v1::SweepReport::Row moved = Sweep(Request("cuda:1", 1)).rows(0);
  EXPECT_EQ(moved.outcome(), v1::SweepReport::OUTCOME_MOVED);
  EXPECT_EQ(moved.before_us(), 0) << "a time of another card says nothing of this one";
  EXPECT_GT(moved.after_us(), 0);
  EXPECT_THAT(moved.detail(), HasSubstr("cuda:0 timed it so far"));
  EXPECT_EQ(Sweep(Request("cuda:1", 1)).rows(0).outcome(), v1::SweepReport::OUTCOME_SAME);
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
  EXPECT_THAT(store_.queue().List({}, 100, "")->items, SizeIs(1)) << "the sweep alone";
}

TEST_F(SweepCardsTest, WhatTakesLongestIsBegunFirstUnlessTimeMayRunOut) {
  StartTwo(sister_);
  const auto begun = [this](const v1::SweepRequest& request) {
    std::vector<std::string> problems;
    for (const v1::Operation& part : PartsOf(AwaitStarted(tuner_->Sweep(request)).name())) {
      problems.insert(problems.begin(), part.problem());
    }
    return problems;
  };
  EXPECT_THAT(begun(Request("l4", 3)), ElementsAre(ProblemOf(3), ProblemOf(2), ProblemOf(1)));
  v1::SweepRequest limited = Request("l4", 3);
  limited.mutable_plan()->set_policy(v1::POLICY_COLD);
  limited.mutable_plan()->mutable_budget()->mutable_total_time()->set_seconds(3600);
  EXPECT_THAT(begun(limited), ElementsAre(ProblemOf(1), ProblemOf(2), ProblemOf(3)));
}

TEST_F(SweepCardsTest, CancellingASweepCancelsItsProblems) {
  StartTwo(sister_);
  std::promise<void> go;
  HoldTrials(go.get_future().share());
  const std::string sweep = tuner_->Sweep(Request("l4", 8))->name();
  for (const v1::Operation& part : AwaitParts(sweep, 2)) {
    Await(part.name(), [](const v1::Operation& operation) {
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
  Create("operations/old", request);
  const std::string second = jobs::PartName("operations/old", PartKey(1, sister_.device()));
  const std::string third = jobs::PartName("operations/old", PartKey(2, sister_.device()));
  Create(second, OneOf(request, 2, "cuda:0,cuda:1"), "operations/old");
  Create(third, OneOf(request, 3, "cuda:0,cuda:1"), "operations/old");
  EndFaster(second, 2, "cuda:1");
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

// Names of their parts had a number and no class.
TEST_F(SweepCardsTest, AResumedSweepOfAnEarlierVersionTakesItsProblemsByTheirCards) {
  const v1::SweepRequest request = Request("cuda:0,cuda:1", 2);
  Create("operations/old", request);
  Create("operations/old.2", OneOf(request, 1, "cuda:1"), "operations/old");
  Create("operations/old.3", OneOf(request, 2, "cuda:1"), "operations/old");
  EndFaster("operations/old.2", 1, "cuda:1");
  StartTwo(stranger_);
  ASSERT_TRUE(tuner_->Resume().ok());
  EXPECT_THAT(RowsOf(Await("operations/old").sweep()),
              ElementsAre(Pair("cuda:0 " + ProblemOf(1), v1::SweepReport::OUTCOME_NEW),
                          Pair("cuda:0 " + ProblemOf(2), v1::SweepReport::OUTCOME_NEW),
                          Pair("cuda:1 " + ProblemOf(1), v1::SweepReport::OUTCOME_FASTER),
                          Pair("cuda:1 " + ProblemOf(2), v1::SweepReport::OUTCOME_NEW)));
  EXPECT_THAT(PartsOf("operations/old"), SizeIs(4)) << "two of them were made anew";
}

// What an H200 found that was cuda:0 then is nothing that an L4 has found.
TEST_F(SweepCardsTest, AResumedSweepTakesNothingOfAClassThatIsGone) {
  const v1::SweepRequest request = Request("cuda:0,cuda:1", 2);
  Create("operations/old", request);
  const std::string done = jobs::PartName("operations/old", PartKey(0, stranger_.device()));
  const std::string left = jobs::PartName("operations/old", PartKey(1, stranger_.device()));
  Create(done, OneOf(request, 1, "cuda:0"), "operations/old");
  Create(left, OneOf(request, 2, "cuda:0"), "operations/old");
  EndFaster(done, 1, "cuda:0");
  v1::Operation kept = store_.queue().Get("operations/old")->operation;
  *kept.mutable_sweep()->add_rows() = Faster(1, "cuda:0");
  const auto leased = store_.queue().Lease("operations/old", "attuned", absl::Minutes(1));
  ASSERT_TRUE(store_.queue().Update({"operations/old", (*leased)->epoch}, kept).ok());
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  EXPECT_THAT(RowsOf(Await("operations/old").sweep()),
              ElementsAre(Pair("cuda:0 " + ProblemOf(1), v1::SweepReport::OUTCOME_NEW),
                          Pair("cuda:0 " + ProblemOf(2), ::testing::_)));
  EXPECT_THAT(PartsOf("operations/old"), SizeIs(4)) << "the L4 has parts of its own";
}

// The second problem was timed by cuda:1, which has the first one to go on with: it waits, and cuda:0 takes the third.
TEST_F(SweepCardsTest, AResumedProblemKeepsItsCard) {
  StartTwo(sister_);
  v1::SweepRequest second = Request("cuda:1", 2);
  second.mutable_plan()->mutable_shapes(0)->mutable_problem()->DeleteSubrange(0, 1);
  ASSERT_THAT(CardsOf(Sweep(second)), ElementsAre("cuda:1"));
  const v1::SweepRequest request = Request("cuda:0,cuda:1", 3);
  Create("operations/old", request);
  Create(jobs::PartName("operations/old", PartKey(0, sister_.device())), OneOf(request, 1, "cuda:1"), "operations/old");
  std::promise<void> go;
  HoldTrials(go.get_future().share());
  StartTwo(sister_);
  ASSERT_TRUE(tuner_->Resume().ok());
  const std::vector<v1::Operation> parts = AwaitParts("operations/old", 2);
  EXPECT_EQ(parts.front().problem(), ProblemOf(3));
  go.set_value();
  EXPECT_THAT(CardsOf(Await("operations/old").sweep()), SizeIs(3));
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
  EXPECT_THAT(RowsOf(Await(job.name).sweep()),
              ElementsAre(Pair("cuda:0 " + ProblemOf(1), v1::SweepReport::OUTCOME_NEW),
                          Pair("cuda:0 " + ProblemOf(2), v1::SweepReport::OUTCOME_NEW),
                          Pair("cuda:1 " + ProblemOf(1), v1::SweepReport::OUTCOME_FASTER),
                          Pair("cuda:1 " + ProblemOf(2), v1::SweepReport::OUTCOME_NEW)));
}

TEST_F(SweepCardsTest, TheTotalTimeIsOfEachCard) {
  std::atomic<int> hours = 0;
  clock_ = [&] { return absl::Hours(hours.load()); };
  KeepInStep();
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
  KeepInStep();
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
