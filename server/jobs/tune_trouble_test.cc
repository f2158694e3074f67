// Tune where something other than a variant is at fault: the infrastructure, the store, the host, the reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/base/reason.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using TuneTroubleTest = TunerTest;

TEST_F(TuneTroubleTest, ALostTrialIsRepeated) {
  std::atomic<int> calls = 0;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (++calls == 1) return absl::InternalError("the pipe broke");
    return device_.Good(request.candidate());
  });
  Start();
  EXPECT_EQ(Tune().state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(calls, 7);
  EXPECT_THAT(Verdicts(), ElementsAre(Pair(v1::VERDICT_OK, 6)));
}

TEST_F(TuneTroubleTest, AnInfrastructureThatKeepsFailingFailsTheJob) {
  device_.ScriptTrial([](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    return absl::InternalError("the pipe broke");
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(done.error().message(), HasSubstr("3 trials in a row were lost"));
  EXPECT_THAT(done.error().message(), HasSubstr("the pipe broke"));
  EXPECT_THAT(Verdicts(), ElementsAre(Pair(v1::VERDICT_LOST, 3)));
}

TEST_F(TuneTroubleTest, ADeviceHeldByAnotherDaemonFailsTheJobAtOnce) {
  std::atomic<int> calls = 0;
  device_.ScriptTrial([&](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    ++calls;
    return absl::FailedPreconditionError("held by process 17");
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(done.error().message(), HasSubstr("held by process 17"));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(store_.trials(), IsEmpty());
}

TEST_F(TuneTroubleTest, AStoreThatTakesNoTrialFailsTheJob) {
  store_.FailAppends(absl::InternalError("no such column"));
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(done.error().message(), HasSubstr("no such column"));
}

TEST_F(TuneTroubleTest, AJobWaitsForAStoreThatIsUnavailable) {
  store_.FailAppends(absl::ResourceExhaustedError("disk full"));
  Start();
  const std::string name = tuner_->Tune(TuneRequest())->name();
  const v1::Operation waiting = Await(name, [](const v1::Operation& operation) {
    return operation.progress().message() == "waiting for the store: disk full";
  });
  EXPECT_FALSE(waiting.done());
  store_.FailAppends(absl::OkStatus());
  EXPECT_EQ(Await(name).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Tries(), SizeIs(6));
}

TEST_F(TuneTroubleTest, AJobWaitsForAStoreThatCannotBeRead) {
  Start();
  std::atomic<uint64_t> trials = 0;
  // Gone at the start, and again at the first trial.
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (trials++ == 0) store_.FailReads(absl::UnavailableError("the disk is gone again"));
    return device_.Good(request.candidate());
  });
  store_.FailReads(absl::UnavailableError("the disk is gone"));
  const std::string name = tuner_->Tune(TuneRequest())->name();
  for (const char* why : {"the disk is gone", "the disk is gone again"}) {
    const v1::Operation waiting = Await(name, [&](const v1::Operation& operation) {
      return operation.progress().message() == absl::StrCat("waiting for the store: ", why);
    });
    EXPECT_FALSE(waiting.done()) << waiting.error().message();
    store_.FailReads(absl::OkStatus());
  }
  const v1::Operation done = Await(name);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_THAT(Tries(), ::testing::AllOf(SizeIs(6), ::testing::Each(::testing::Pair(::testing::_, 1))));
}

TEST_F(TuneTroubleTest, AJobThatWaitsForTheStoreIsCancelled) {
  store_.FailAppends(absl::UnavailableError("the disk is gone"));
  Start();
  const std::string name = tuner_->Tune(TuneRequest())->name();
  Await(name, [](const v1::Operation& operation) {
    return operation.progress().message() == "waiting for the store: the disk is gone";
  });
  ASSERT_TRUE(tuner_->Cancel(name).ok());
  EXPECT_EQ(Await(name).state(), v1::Operation::STATE_CANCELLED);
}

TEST_F(TuneTroubleTest, WhatCannotStartIsRefused) {
  Start();
  v1::TuneRequest elsewhere = TuneRequest();
  elsewhere.set_device_id("cuda:7");
  EXPECT_TRUE(absl::IsFailedPrecondition(tuner_->Tune(elsewhere).status()));
  EXPECT_THAT(std::string(tuner_->Tune(elsewhere).status().message()), HasSubstr("this host has cuda:0"));
  const absl::Status too_long = tuner_->Tune(TuneRequest("b1.h1.q2048.d64.f16")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(too_long));
  EXPECT_THAT(std::string(too_long.message()), HasSubstr("tiles: "));
  EXPECT_EQ(too_long.GetPayload(kReasonUrl), "INFEASIBLE");
  v1::TuneRequest unknown = TuneRequest();
  unknown.add_families("tails");
  EXPECT_THAT(std::string(tuner_->Tune(unknown).status().message()), HasSubstr("tails"));
}

TEST_F(TuneTroubleTest, AReferenceThatDoesNotCompileIsToldInOneLineByItsFirstError) {
  pool_.Script([](const worker::v1::CompileRequest& request) -> absl::StatusOr<worker::v1::CompileResponse> {
    if (request.entries(0) != "reference") return supervisor::FakeCompilePool::Plain(request);
    worker::v1::CompileResponse response;
    response.set_verdict(v1::VERDICT_COMPILE_ERROR);
    response.set_log(
        "\nreference.cu(1): warning: unused\n  reference.cu(7): error: no such thing\nreference.cu(8): error");
    return response;
  });
  Start();
  EXPECT_EQ(Tune().error().message(),
            "kernel family reference does not compile for cuda:0: COMPILE_ERROR: reference.cu(7): error: no such "
            "thing");
}

TEST_F(TuneTroubleTest, WithoutAReferenceNothingIsTimed) {
  Start({SearchFamily()});
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(done.error().message(), HasSubstr("no reference kernel family"));
  EXPECT_THAT(device_.calls(), Not(Contains(HasSubstr("trial"))));
}

}  // namespace
}  // namespace attune::jobs
