// Profiles and sanitizer runs through the tuner, over fakes.
#include "server/profile/profile_jobs.h"

#include <future>

#include "server/jobs/testing/tuner_fixture.h"
#include "server/profile/testing/fake_tools.h"

namespace attune::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ProfileJobsTest : public jobs::TunerTest {
 protected:
  void SetUp() override {
    tools_ = &fake_;
    Start();
    ASSERT_EQ(Tune().state(), v1::Operation::STATE_SUCCEEDED);
    trial_ = store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->trial().name();
  }

  v1::ProfileRequest ProfileOf(const std::string& trial) const {
    v1::ProfileRequest request;
    request.mutable_code()->set_trial(trial);
    request.set_device_id("cuda:0");
    return request;
  }
  v1::Operation Profile() { return AwaitStarted(tuner_->Profile(ProfileOf(trial_), {})); }
  v1::Operation Sanitize(const std::vector<v1::SanitizerTool>& tools = {}) {
    v1::SanitizeRequest request;
    request.mutable_code()->set_trial(trial_);
    request.set_device_id("cuda:0");
    for (const v1::SanitizerTool tool : tools) request.add_tools(tool);
    return AwaitStarted(tuner_->Sanitize(request, {}));
  }

  FakeTools fake_;
  std::string trial_;
};

TEST_F(ProfileJobsTest, KeepsTheCountersWithTheTrialAndSaysWhatBoundsIt) {
  const v1::Operation operation = Profile();
  ASSERT_EQ(operation.state(), v1::Operation::STATE_SUCCEEDED) << operation.error().message();
  EXPECT_EQ(operation.profile().bound(), "DRAM, at 90 % of its peak");
  EXPECT_EQ(operation.profile().trial().name(), trial_);
  EXPECT_FALSE(operation.profile().trial().has_recipe());
  EXPECT_EQ(operation.problem(), kProblem);
  const v1::Profile stored = store_.GetTrial(trial_)->profile();
  EXPECT_EQ(stored.kernels(0).counters(0).value(), 0.9);
  EXPECT_EQ(stored.operation(), operation.name());
  EXPECT_GT(stored.time().seconds(), 0);
}

TEST_F(ProfileJobsTest, LaunchesTheTrialsOwnCode) {
  Profile();
  ASSERT_EQ(fake_.targets.size(), 1U);
  const v1::Trial trial = *store_.GetTrial(trial_);
  EXPECT_EQ(fake_.targets[0].job.candidate().artifact(), *store_.ReadArtifact(trial.artifact_sha256()));
  EXPECT_EQ(fake_.targets[0].job.candidate().recipe().SerializeAsString(), trial.recipe().SerializeAsString());
  EXPECT_EQ(fake_.targets[0].device.id(), "cuda:0");
}

// The device's memory is a profiler's to save and restore.
TEST_F(ProfileJobsTest, TheDevicesWorkerGivesItsMemoryBackFirst) {
  const int before = device_.Count("release");
  int released = 0;
  fake_.on_profile = [&](const std::stop_token&) -> absl::StatusOr<v1::Profile> {
    released = device_.Count("release") - before;
    return v1::Profile();
  };
  Profile();
  EXPECT_EQ(released, 1);
  const int prepared = device_.Count("prepare");
  v1::TuneRequest again = TuneRequest();
  again.set_retry_known(true);
  Tune(again);
  EXPECT_GT(device_.Count("prepare"), prepared) << "what was prepared has gone with the memory";
}

TEST_F(ProfileJobsTest, InteractiveJobsGoFirst) {
  const ProfileJob profile({host_, store_, &fake_});
  EXPECT_EQ(profile.Terms(ProfileOf(trial_).SerializeAsString())->priority, trials::Priority::kBackground);
  const SanitizeJob sanitize({host_, store_, &fake_});
  EXPECT_EQ(sanitize.Terms(v1::SanitizeRequest().SerializeAsString())->priority, trials::Priority::kBackground);
}

TEST_F(ProfileJobsTest, ACancelledOneIsEndedAndKeepsNothing) {
  std::promise<void> begun;
  fake_.on_profile = [&](const std::stop_token& stop) -> absl::StatusOr<v1::Profile> {
    begun.set_value();
    std::promise<void> stopped;
    const std::stop_callback told(stop, [&] { stopped.set_value(); });
    stopped.get_future().wait();
    return absl::CancelledError("stopped");
  };
  const auto started = tuner_->Profile(ProfileOf(trial_), {});
  ASSERT_TRUE(started.ok()) << started.status();
  ASSERT_EQ(begun.get_future().wait_for(kPatience), std::future_status::ready);
  ASSERT_TRUE(tuner_->Cancel(started->name()).ok());
  EXPECT_EQ(Await(started->name()).state(), v1::Operation::STATE_CANCELLED);
  EXPECT_FALSE(store_.GetTrial(trial_)->has_profile());
}

TEST_F(ProfileJobsTest, WhatATimeOutAndATroubleSayIsTheOperationsError) {
  fake_.on_profile = [](const std::stop_token&) { return absl::DeadlineExceededError("'ncu' was ended after 2m"); };
  const v1::Operation operation = Profile();
  EXPECT_EQ(operation.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(operation.error().message(), HasSubstr("'ncu' was ended after 2m"));
}

TEST_F(ProfileJobsTest, AHostWithoutTheToolSaysSoAtOnce) {
  fake_.here = absl::FailedPreconditionError("this host has no ncu");
  EXPECT_EQ(tuner_->Profile(ProfileOf(trial_), {}).status().message(), "this host has no ncu");
  tools_ = nullptr;
  Start();
  EXPECT_THAT(std::string(tuner_->Profile(ProfileOf(trial_), {}).status().message()), HasSubstr("no profiler"));
}

// As when the next start is of a daemon without tools.
TEST_F(ProfileJobsTest, WhatAnEarlierProcessLeftSaysSoToo) {
  store::Job job;
  job.name = "operations/left";
  job.kind = store::JobKind::kProfile;
  job.request = ProfileOf(trial_).SerializeAsString();
  job.operation.set_name(job.name);
  job.operation.set_state(v1::Operation::STATE_QUEUED);
  ASSERT_TRUE(store_.queue().Create(job, {}).ok());
  tools_ = nullptr;
  Start();
  ASSERT_TRUE(tuner_->Resume().ok());
  const v1::Operation ended = Await(job.name);
  EXPECT_EQ(ended.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(ended.error().message(), HasSubstr("no profiler"));
}

TEST_F(ProfileJobsTest, CodeThatIsGoneIsNamed) {
  store_.LoseArtifactFiles();
  EXPECT_THAT(Profile().error().message(), HasSubstr("is no longer stored"));
}

TEST_F(ProfileJobsTest, EverySanitizerRunsAndCleanIsSaid) {
  const v1::Operation operation = Sanitize();
  ASSERT_EQ(operation.state(), v1::Operation::STATE_SUCCEEDED) << operation.error().message();
  EXPECT_TRUE(operation.sanitize().clean());
  EXPECT_EQ(operation.sanitize().reason(), "clean under memcheck, racecheck, synccheck, initcheck");
  EXPECT_EQ(operation.sanitize().trial().sanitizing().runs_size(), 4);
  EXPECT_EQ(operation.progress().trials_done(), 4);
  EXPECT_EQ(store_.GetTrial(trial_)->sanitizing().operation(), operation.name());
  EXPECT_LE(fake_.left.back(), fake_.left.front()) << "all share one time";
}

TEST_F(ProfileJobsTest, FindingsAreKeptAndTheOthersStillRun) {
  fake_.finds = v1::SANITIZER_TOOL_RACECHECK;
  const v1::Operation operation = Sanitize();
  EXPECT_FALSE(operation.sanitize().clean());
  EXPECT_EQ(operation.sanitize().reason(), "racecheck reports 2 errors: Invalid read");
  EXPECT_EQ(fake_.tools.size(), 4U);
  EXPECT_THAT(store_.GetTrial(trial_)->sanitizing().runs(1).findings(), ElementsAre("Invalid read"));
}

TEST_F(ProfileJobsTest, OneThatIsLateHasNoResultAndIsNotClean) {
  fake_.late = v1::SANITIZER_TOOL_INITCHECK;
  const v1::Operation operation = Sanitize({v1::SANITIZER_TOOL_INITCHECK, v1::SANITIZER_TOOL_INITCHECK});
  EXPECT_FALSE(operation.sanitize().clean());
  EXPECT_EQ(operation.sanitize().reason(), "initcheck came to no result: it was ended after 2m");
  EXPECT_THAT(fake_.tools, ElementsAre(v1::SANITIZER_TOOL_INITCHECK)) << "each once";
}

}  // namespace
}  // namespace attune::profile
