// Jobs among each other: joining, cancelling, waiting, going first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "server/catalog/retry_trials.h"
#include "server/jobs/testing/gated_tuner.h"

namespace attune::jobs {
namespace {

using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;

class JobsTest : public GatedTunerTest {
 protected:
  // With it RANDOM draws a variant of BLOCK=64 among its first.
  static constexpr uint64_t kSeedOfBlock64 = 1;
};

TEST_F(JobsTest, AnIdenticalRequestInFlightIsJoined) {
  GateTrials();
  Start();
  const v1::Operation first = *tuner_->Tune(TuneRequest());
  gate_.AwaitArrival(1);
  const v1::Operation second = *tuner_->Tune(TuneRequest());
  EXPECT_EQ(first.name(), second.name());
  const v1::Operation other = *tuner_->Tune(TuneRequest("b1.h1.q256.d64.f16"));
  EXPECT_NE(first.name(), other.name());
  gate_.Open();
  EXPECT_EQ(Await(first.name()).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Await(other.name()).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 1)));
}

TEST_F(JobsTest, ARequestIdNamesOneOperationForGood) {
  Start();
  v1::TuneRequest request = TuneRequest();
  request.set_request_id("mine");
  const v1::Operation first = Tune(request);
  EXPECT_EQ(tuner_->Tune(request)->name(), first.name());
  EXPECT_TRUE(tuner_->Tune(request)->done());
}

TEST_F(JobsTest, CancelCutsTheRunningTrialShortAndKeepsThoseBefore) {
  std::promise<void> hangs;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (device_.Count("trial") < 3) return device_.Good(request.candidate());
    std::promise<void> aborted;
    const std::stop_callback cut(device_.abort(), [&] { aborted.set_value(); });
    hangs.set_value();
    EXPECT_EQ(aborted.get_future().wait_for(kPatience), std::future_status::ready);
    return absl::CancelledError("the job was cancelled");
  });
  Start();
  const v1::Operation started = *tuner_->Tune(TuneRequest());
  hangs.get_future().wait();
  ASSERT_TRUE(tuner_->Cancel(started.name()).ok());
  EXPECT_EQ(Await(started.name()).state(), v1::Operation::STATE_CANCELLED);
  EXPECT_THAT(store_.trials(), SizeIs(2));
  EXPECT_EQ(Verdicts()[v1::VERDICT_OK], 2);
  EXPECT_EQ(tuner_->Cancel(started.name())->state(), v1::Operation::STATE_CANCELLED);
  EXPECT_TRUE(absl::IsNotFound(tuner_->Cancel("operations/none").status()));
}

TEST_F(JobsTest, AQueuedJobIsCancelledAtOnce) {
  GateTrials();
  Start();
  std::vector<std::string> names;
  for (const char* problem : {kProblem, "b1.h1.q256.d64.f16", "b1.h1.q512.d64.f16"}) {
    names.push_back(tuner_->Tune(TuneRequest(problem))->name());
  }
  gate_.AwaitArrival(1);
  // Two run, the third waits for them.
  EXPECT_EQ(tuner_->Cancel(names[2])->state(), v1::Operation::STATE_CANCELLED);
  gate_.Open();
  EXPECT_EQ(Await(names[0]).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Await(names[1]).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Tries("b1.h1.q512.d64.f16").size(), 0);
}

TEST_F(JobsTest, ACancelThatTheStoreDidNotTakeIsAnErrorThoughTheJobStops) {
  GateTrials();
  Start();
  const std::string name = tuner_->Tune(TuneRequest())->name();
  gate_.AwaitArrival(1);
  store_.queue().FailWrites(absl::UnavailableError("the disk is gone"));
  const absl::StatusOr<v1::Operation> cancelled = tuner_->Cancel(name);
  EXPECT_TRUE(absl::IsUnavailable(cancelled.status())) << cancelled.status();
  EXPECT_TRUE(device_.abort().stop_requested());
  store_.queue().FailWrites(absl::OkStatus());
  gate_.Open();
  EXPECT_EQ(Await(name).state(), v1::Operation::STATE_CANCELLED);
}

TEST_F(JobsTest, AnInteractiveJobGoesBeforeABackgroundOneBetweenTwoTrials) {
  GateTrials();
  Start();
  v1::TuneRequest background = TuneRequest();
  background.set_background(true);
  const v1::Operation slow = *tuner_->Tune(background);
  gate_.AwaitArrival(1);
  const std::string other = "b1.h1.q256.d64.f16";
  // Before the background trial ends the interactive job must stand in line; its references are compiled by then.
  pool_.Hold();
  const v1::Operation quick = *tuner_->Tune(TuneRequest(other));
  pool_.Go();
  gate_.Open();
  EXPECT_EQ(Await(quick.name()).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Await(slow.name()).state(), v1::Operation::STATE_SUCCEEDED);
  // Whenever it came in between, its trials stand together: nobody of lower rank broke in.
  const std::vector<std::string> calls = device_.calls();
  const auto first = std::find(calls.begin(), calls.end(), "prepare " + other);
  ASSERT_NE(first, calls.end());
  const auto last = std::find(first, calls.end(), "play-off " + other);
  ASSERT_NE(last, calls.end());
  EXPECT_EQ(std::count(first, last, "trial " + other), 6);
  EXPECT_EQ(std::count(first, last, std::string("trial ") + kProblem), 0);
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 1)));
}

TEST_F(JobsTest, JobsOnOneProblemShareTheirTrials) {
  GateTrials();
  Start();
  const v1::Operation first = *tuner_->Tune(TuneRequest());
  gate_.AwaitArrival(1);
  // Asked for by the second job before the first has tried it, and by the background one while it has the device.
  const int submitted = pool_.AwaitSubmitted(0);
  v1::TuneRequest request = TuneRequest();
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  request.mutable_strategy()->set_seed(kSeedOfBlock64);
  const v1::Operation second = *tuner_->Tune(request);
  pool_.AwaitSubmitted(submitted + 1);
  gate_.Open();
  EXPECT_EQ(Await(first.name()).state(), v1::Operation::STATE_SUCCEEDED);
  const v1::Operation done = Await(second.name());
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(done.progress().trials_done(), 6);
  ExpectEveryVariantTriedOnce();
}

TEST_F(JobsTest, AJobThatIsOvertakenDoesNotRepeatWhatTheOtherTriedInItsTurn) {
  GateTrials();
  Start();
  v1::TuneRequest background = TuneRequest();
  background.set_background(true);
  const v1::Operation slow = *tuner_->Tune(background);
  gate_.AwaitArrival(1);
  const v1::Operation quick = *tuner_->Tune(TuneRequest());
  AwaitPhase(quick.name(), v1::OperationProgress::PHASE_REFERENCE);
  gate_.Open();
  EXPECT_EQ(Await(quick.name()).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Await(slow.name()).state(), v1::Operation::STATE_SUCCEEDED);
  ExpectEveryVariantTriedOnce();
}

TEST_F(JobsTest, EqualJobsRunOneAfterTheOther) {
  GateTrials();
  Start();
  const std::string other = "b1.h1.q256.d64.f16";
  const v1::Operation first = *tuner_->Tune(TuneRequest());
  gate_.AwaitArrival(1);
  const v1::Operation second = *tuner_->Tune(TuneRequest(other));
  gate_.Open();
  Await(first.name());
  Await(second.name());
  EXPECT_EQ(device_.Count("prepare"), 2);
}

TEST_F(JobsTest, AJobThatWaitsSaysForWhomAndHowManyAreAhead) {
  GateTrials();
  Start();
  const v1::Operation first = *tuner_->Tune(TuneRequest());
  gate_.AwaitArrival(1);
  // The second waits for the device, the third and the fourth for a thread.
  std::vector<std::string> names;
  int64_t ahead = 0;
  for (const char* problem : {"b1.h1.q256.d64.f16", "b1.h1.q512.d64.f16", "b1.h1.q64.d64.f16"}) {
    names.push_back(tuner_->Tune(TuneRequest(problem))->name());
    const v1::Operation operation =
        Await(names.back(), [](const v1::Operation& operation) { return operation.progress().queue_position() > 0; });
    EXPECT_EQ(operation.state(), v1::Operation::STATE_QUEUED) << "it has never had the device";
    const v1::OperationProgress& waiting = operation.progress();
    EXPECT_EQ(waiting.queue_position(), ++ahead);
    EXPECT_EQ(waiting.waits_for(), first.name());
    EXPECT_EQ(waiting.waits_for_title(), first.title());
  }
  EXPECT_EQ(tuner_->Cancel(names[1])->state(), v1::Operation::STATE_CANCELLED);
  gate_.Open();
  for (const std::string& name : {first.name(), names[0], names[2]}) {
    const v1::Operation done = Await(name);
    EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED);
    EXPECT_EQ(done.progress().queue_position(), 0);
    EXPECT_EQ(done.progress().waits_for(), "");
  }
}

TEST_F(JobsTest, AJobThatHasBegunSaysAtOnceWhomItWaitsFor) {
  GateTrials();
  Start();
  const v1::Operation first = *tuner_->Tune(TuneRequest());
  gate_.AwaitArrival(1);
  pool_.Hold();  // the second does not come to the device: the kernel of its reference is being compiled
  const std::string second = tuner_->Tune(TuneRequest("b1.h1.q256.d64.f16"))->name();
  const v1::Operation waiting = Await(second, [](const v1::Operation& operation) {
    return operation.progress().phase() == v1::OperationProgress::PHASE_REFERENCE;
  });
  EXPECT_EQ(waiting.state(), v1::Operation::STATE_QUEUED);
  EXPECT_EQ(waiting.progress().waits_for(), first.name());
  EXPECT_EQ(waiting.progress().queue_position(), 1);
  pool_.Go();
  gate_.Open();
  const v1::Operation running =
      Await(second, [](const v1::Operation& operation) { return operation.state() == v1::Operation::STATE_RUNNING; });
  EXPECT_EQ(running.progress().queue_position(), 0);
  EXPECT_EQ(Await(second).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(JobsTest, InteractiveJobsAreAheadOfBackgroundOnesAndThoseOfMissesWhetherTheyHaveBegunOrNot) {
  GateTrials();
  Start();
  const auto start = [this](const std::string& problem, bool background) {
    v1::TuneRequest request = TuneRequest(problem);
    request.set_background(background);
    return tuner_->Tune(request)->name();
  };
  const auto await_place = [this](const std::string& name, int64_t position) {
    EXPECT_EQ(
        Await(name, [&](const v1::Operation& operation) { return operation.progress().queue_position() == position; })
            .progress()
            .queue_position(),
        position);
  };
  const std::string first = start(kProblem, false);
  gate_.AwaitArrival(1);
  // One waits for the device and one for a thread; so do the first and the last of those in the background.
  const std::string second = start("b1.h1.q256.d64.f16", false);
  await_place(second, 1);
  const std::string third = start("b1.h1.q512.d64.f16", false);
  await_place(third, 2);
  std::vector<std::string> background;
  for (const char* problem : {"b1.h2.q128.d64.f16", "b1.h2.q256.d64.f16", "b1.h2.q512.d64.f16"}) {
    background.push_back(start(problem, true));
    await_place(background.back(), 2 + static_cast<int64_t>(background.size()));
  }
  v1::TuneRequest miss = TuneRequest("b1.h4.q128.d64.f16");
  miss.set_on_miss(true);
  const std::string idle = tuner_->Tune(miss)->name();
  await_place(idle, 6);
  const std::string fourth = start("b1.h1.q1024.d64.f16", false);
  await_place(fourth, 3);
  await_place(idle, 7);
  for (size_t i = 0; i < background.size(); ++i) await_place(background[i], 4 + static_cast<int64_t>(i));
  ASSERT_TRUE(tuner_->Cancel(third).ok());
  await_place(fourth, 2);
  for (size_t i = 0; i < background.size(); ++i) await_place(background[i], 3 + static_cast<int64_t>(i));
  gate_.Open();
  background.push_back(idle);
  for (const std::string& name : background) EXPECT_EQ(Await(name).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(JobsTest, ABackgroundJobWithACallOnTheDeviceIsAheadOfInteractiveOnesToTheLast) {
  GateTrials();
  Start();
  v1::TuneRequest background = TuneRequest();
  background.set_background(true);
  const v1::Operation slow = *tuner_->Tune(background);
  gate_.AwaitArrival(1);
  // The first two wait for the device, the third for a thread.
  int64_t ahead = 0;
  for (const char* problem : {"b1.h1.q256.d64.f16", "b1.h1.q512.d64.f16", "b1.h1.q64.d64.f16"}) {
    ++ahead;
    const v1::Operation waiting =
        Await(tuner_->Tune(TuneRequest(problem))->name(),
              [&](const v1::Operation& operation) { return operation.progress().queue_position() == ahead; });
    EXPECT_EQ(waiting.progress().queue_position(), ahead);
  }
  gate_.Open();
}

TEST_F(JobsTest, ABackgroundJobSaysThatItWaitsForTheInteractiveOneThatCameLater) {
  GateTrials();
  Start();
  v1::TuneRequest background = TuneRequest();
  background.set_background(true);
  const v1::Operation slow = *tuner_->Tune(background);
  gate_.AwaitArrival(1);
  const v1::Operation quick = *tuner_->Tune(TuneRequest("b1.h1.q256.d64.f16"));
  EXPECT_EQ(
      Await(quick.name(), [](const v1::Operation& operation) { return operation.progress().queue_position() > 0; })
          .progress()
          .waits_for(),
      slow.name())
      << "the trial that is running";
  gate_.LetOnePass();
  EXPECT_EQ(Await(slow.name(), [](const v1::Operation& operation) { return operation.progress().queue_position() > 0; })
                .progress()
                .waits_for(),
            quick.name());
  gate_.Open();
  Await(quick.name());
  Await(slow.name());
}

TEST_F(JobsTest, OperationsNameTheirProblem) {
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.problem(), kProblem);
}

TEST_F(JobsTest, TrialsToRetryAreTriedAgainByTheNextJobAndTheirCodeIsCompiledAgain) {
  std::atomic<bool> killed = true;
  pool_.Script([&](const worker::v1::CompileRequest& request) -> absl::StatusOr<worker::v1::CompileResponse> {
    if (!killed || !supervisor::FakeCompilePool::Has(request, "-DBLOCK=32"))
      return supervisor::FakeCompilePool::Plain(request);
    worker::v1::CompileResponse response;
    response.set_verdict(v1::VERDICT_CRASHED);
    return response;
  });
  Start();
  Tune();
  EXPECT_EQ(Verdicts()[v1::VERDICT_CRASHED], 2);
  killed = false;
  Tune();
  EXPECT_EQ(store_.trials().size(), 6) << "a verdict holds";
  v1::TrialFilter filter;
  filter.add_verdicts(v1::VERDICT_CRASHED);
  const auto retried = catalog::RetryTrials(filter, store_, host_);
  ASSERT_TRUE(retried.ok()) << retried.status();
  EXPECT_EQ(retried->trials(), 2);
  EXPECT_EQ(retried->codes(), 1);
  EXPECT_THAT(retried->problems(), ::testing::ElementsAre(kProblem));
  const int compiles = pool_.compiles();
  Tune();
  EXPECT_EQ(store_.trials().size(), 8);
  EXPECT_EQ(Verdicts()[v1::VERDICT_CRASHED], 2);
  EXPECT_EQ(pool_.compiles(), compiles + 1);
}

TEST_F(JobsTest, AnIdleDeviceIsReleasedAndPreparedAnewForTheNext) {
  Start(Families(SearchFamily()), absl::Milliseconds(1));
  Tune();
  while (device_.calls().back() != "release") std::this_thread::yield();
  const int prepared = device_.Count("prepare");
  Tune();
  EXPECT_GT(device_.Count("prepare"), prepared);
}

TEST_F(JobsTest, OptionsThatCannotWorkAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Tuner::Create(TunerOptions()).status()));
  TunerOptions without_kinds;
  without_kinds.store = &store_;
  without_kinds.host = &host_;
  EXPECT_TRUE(absl::IsInvalidArgument(Tuner::Create(without_kinds).status()));
  Start();
  EXPECT_TRUE(absl::IsInvalidArgument(
      Tuning::Create(
          {.host = host_, .store = store_, .results = *results_, .compiler = pool_, .devices = {{"cuda:3", &device_}}})
          .status()));
}

}  // namespace
}  // namespace attune::jobs
