// Jobs that outlive the tuner that began them: resuming, draining, leases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "server/catalog/retry_trials.h"
#include "server/jobs/testing/gated_tuner.h"

namespace attune::jobs {
namespace {

using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;

using ResumeTest = GatedTunerTest;

TEST_F(ResumeTest, AJobWhoseTunerEndedIsResumedAndTriesEveryVariantOnce) {
  GateTrials();
  Start();
  const v1::Operation started = *tuner_->Tune(TuneRequest());
  gate_.AwaitArrival(1);
  gate_.LetOnePass();
  gate_.LetOnePass();
  gate_.AwaitArrival(3);
  // Drain gives up waiting at once, and cuts nothing short: the third trial ends while the tuner is taken down.
  tuner_->Drain(absl::ZeroDuration());
  EXPECT_FALSE(device_.abort().stop_requested());
  EXPECT_TRUE(absl::IsUnavailable(tuner_->Tune(TuneRequest()).status()));
  gate_.Open();
  tuning_.reset();
  EXPECT_THAT(store_.trials(), SizeIs(3));
  EXPECT_FALSE(store_.queue().Get(started.name())->operation.done());

  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  const v1::Operation done = Await(started.name());
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(done.progress().trials_reused(), 3);
  ExpectEveryVariantTriedOnce();
}

TEST_F(ResumeTest, AResumedRetryDoesNotRepeatItsOwnTrials) {
  Start();
  Tune();
  GateTrials();
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  const v1::Operation started = *tuner_->Tune(request);
  gate_.AwaitArrival(1);
  tuner_->Drain(absl::ZeroDuration());
  gate_.Open();
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  EXPECT_EQ(Await(started.name()).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 2)));
}

TEST_F(ResumeTest, AResumedJobWhoseDeviceIsGoneFailsClearly) {
  store::Job job;
  job.name = "operations/old";
  v1::TuneRequest request = TuneRequest();
  request.set_device_id("cuda:5");
  job.request = request.SerializeAsString();
  job.operation.set_name(job.name);
  ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  EXPECT_EQ(Await(job.name).state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(Await(job.name).error().message(), ::testing::HasSubstr("cuda:5"));
}

TEST_F(ResumeTest, AResumedJobWaitsForAStoreThatCannotSayWhatItsSeedsAre) {
  Start();
  Tune(TuneRequest("b1.h1.q256.d64.f16"));
  store::Job job;
  job.name = "operations/old";
  v1::TuneRequest request = TuneRequest();
  request.add_seed_from("b1.h1.q256.d64.f16");
  job.request = request.SerializeAsString();
  job.operation.set_name(job.name);
  ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  store_.FailReads(absl::UnavailableError("the disk is gone"));
  ASSERT_TRUE(tuner_->Resume().ok());
  const v1::Operation waiting = Await(job.name, [](const v1::Operation& operation) {
    return operation.progress().message() == "waiting for the store: seed_from[0]: the disk is gone";
  });
  EXPECT_FALSE(waiting.done()) << waiting.error().message();
  store_.FailReads(absl::OkStatus());
  EXPECT_EQ(Await(job.name).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(ResumeTest, AJobThatAnotherHolderTookIsLeftToItAndItsWritesAreRefused) {
  GateTrials();
  lease_ = absl::Nanoseconds(1);  // has run out as soon as it is there
  Start();
  const std::string name = tuner_->Tune(TuneRequest())->name();
  gate_.AwaitArrival(1);
  const absl::StatusOr<std::optional<store::Job>> taken = store_.queue().Lease(name, "other", absl::Hours(1));
  ASSERT_TRUE(taken.ok() && taken->has_value()) << taken.status();
  gate_.Open();
  tuner_->Drain(absl::InfiniteDuration());
  tuning_.reset();
  EXPECT_THAT(store_.trials(), SizeIs(0));
  const store::Job job = *store_.queue().Get(name);
  EXPECT_EQ(job.holder, "other");
  EXPECT_EQ(job.epoch, (*taken)->epoch);
  EXPECT_FALSE(job.operation.done());
}

TEST_F(ResumeTest, AJobOfAnotherHolderIsNotResumedUntilItsLeaseIsOver) {
  store::Job job;
  job.name = "operations/old";
  job.request = TuneRequest().SerializeAsString();
  job.operation.set_name(job.name);
  ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  const int64_t epoch = (*store_.queue().Lease(job.name, "other", absl::Hours(1)))->epoch;
  lease_ = absl::Milliseconds(30);
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  const v1::Operation other = Tune(TuneRequest("b1.h1.q256.d64.f16"));
  EXPECT_EQ(other.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(job.name)->holder, "other");
  ASSERT_TRUE(store_.queue().Requeue({job.name, epoch}).ok());
  while (!store_.queue().Get(job.name)->operation.done()) std::this_thread::yield();
  EXPECT_EQ(store_.queue().Get(job.name)->operation.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Tries(), SizeIs(6));
}

TEST_F(ResumeTest, AJobThatWasCancelledBeforeTheRestartIsNotResumed) {
  store::Job job;
  job.name = "operations/old";
  job.request = TuneRequest().SerializeAsString();
  job.operation.set_name(job.name);
  ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  ASSERT_TRUE(store_.queue().Cancel(job.name).ok());
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  EXPECT_EQ(Await(job.name).state(), v1::Operation::STATE_CANCELLED);
  EXPECT_THAT(Tries(), SizeIs(0));
}

TEST_F(ResumeTest, ARunningJobKeepsItsLease) {
  GateTrials();
  lease_ = absl::Milliseconds(30);
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  const std::string name = tuner_->Tune(TuneRequest())->name();
  gate_.AwaitArrival(1);
  const absl::Time first = store_.queue().Get(name)->leased_until;
  while (store_.queue().Get(name)->leased_until <= first + 3 * lease_) std::this_thread::yield();
  gate_.Open();
  EXPECT_EQ(Await(name).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(store_.queue().Get(name)->epoch, 1);
}

TEST_F(ResumeTest, TwoHoldersShareAQueue) {
  GateTrials();
  Start();
  supervisor::FakeCompilePool other_pool;
  supervisor::FakeDeviceWorker other_device{FakeDevice()};
  other_device.ScriptUs([](const worker::v1::Candidate&) { return 100.0; });
  const absl::StatusOr<std::unique_ptr<Tuning>> other = Tuning::Create({.host = host_,
                                                                        .store = store_,
                                                                        .results = *results_,
                                                                        .compiler = other_pool,
                                                                        .devices = {{"cuda:0", &other_device}},
                                                                        .holder = "other"});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(tuner_->Resume().ok());
  std::vector<std::string> names;
  for (const char* problem : {kProblem, "b1.h1.q256.d64.f16", "b1.h1.q512.d64.f16", "b1.h1.q64.d64.f16"}) {
    names.push_back(tuner_->Tune(TuneRequest(problem))->name());
  }
  gate_.AwaitArrival(1);
  // Two run, and have the device.
  while (store_.queue().Get(names[0])->epoch == 0 || store_.queue().Get(names[1])->epoch == 0) {
    std::this_thread::yield();
  }
  ASSERT_TRUE((*other)->tuner().Resume().ok());
  for (size_t i = 2; i < 4; ++i) {
    while (!store_.queue().Get(names[i])->operation.done()) std::this_thread::yield();
    EXPECT_EQ(store_.queue().Get(names[i])->holder, "other");
  }
  EXPECT_GT(other_device.Count("trial"), 0);
  gate_.Open();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(Await(names[i]).state(), v1::Operation::STATE_SUCCEEDED);
  for (const std::string& name : names) EXPECT_TRUE(store_.queue().Get(name)->operation.done());
  EXPECT_THAT(store_.trials(), SizeIs(24));
}

}  // namespace
}  // namespace attune::jobs
