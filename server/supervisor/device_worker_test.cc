#include "server/supervisor/device_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/processes.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

worker::v1::PrepareRequest PrepareOf(uint64_t seed, const std::string& what = "ok") {
  worker::v1::PrepareRequest request;
  request.set_seed(seed);
  request.mutable_exact()->set_artifact(what);
  return request;
}
worker::v1::TrialRequest TrialOf(const std::string& what) {
  worker::v1::TrialRequest request;
  request.mutable_candidate()->set_artifact(what);
  return request;
}
worker::v1::PlayOffRequest PlayOffOf(const std::string& what, const std::string& other = "ok") {
  worker::v1::PlayOffRequest request;
  request.add_candidates()->set_artifact(what);
  request.add_candidates()->set_artifact(other);
  return request;
}

std::string TextOf(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}
// Blocks until the file has it, at most a minute.
bool AwaitText(const std::string& file, const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!absl::StrContains(TextOf(file), text)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class DeviceWorkerTest : public ::testing::Test {
 protected:
  DeviceWorkerTest() {
    options_.executable = FAKE_WORKER;
    options_.lock_dir = directory_.path() + "/locks";
    device_.set_id("fake:0");
  }
  ~DeviceWorkerTest() override {
    worker_.reset();
    EXPECT_TRUE(HasNoChildren());
  }
  DeviceWorker& worker() {
    if (worker_ == nullptr) worker_ = MakeDeviceWorker(options_, device_);
    return *worker_;
  }
  worker::v1::TrialResponse Trial(const std::string& what) {
    absl::StatusOr<worker::v1::TrialResponse> response = worker().Trial(TrialOf(what));
    EXPECT_TRUE(response.ok()) << response.status();
    return response.value_or(worker::v1::TrialResponse());
  }
  // "pid 12 seed 5 prepares 1 verify host"
  // What a fake worker does the first time it is asked, and then no more.
  std::string Once(const char* what) { return absl::StrCat("once ", directory_.path(), "/", what, " ", what); }
  // The process of the worker that answers now.
  pid_t Process() {
    int pid = 0;
    EXPECT_TRUE(absl::SimpleAtoi(Pid(Trial("ok").detail()), &pid));
    return pid;
  }
  static std::string Pid(const std::string& state) { return std::vector<std::string>(absl::StrSplit(state, ' '))[1]; }

  TemporaryDirectory directory_;
  WorkerOptions options_;
  v1::Device device_;
  std::unique_ptr<DeviceWorker> worker_;
};

TEST_F(DeviceWorkerTest, StartsNoProcessBeforeItIsNeeded) {
  worker().Release();
  EXPECT_TRUE(HasNoChildren());
}

TEST_F(DeviceWorkerTest, IsToldWhereToVerify) {
  EXPECT_THAT(Trial("ok").detail(), EndsWith("verify "));
  worker_.reset();
  options_.verify_on_host = true;
  EXPECT_THAT(Trial("ok").detail(), EndsWith("verify host"));
}

TEST_F(DeviceWorkerTest, KeepsOneProcessForAllCalls) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const std::string state = Trial("ok").detail();
  EXPECT_THAT(state, HasSubstr("seed 5 prepares 1"));
  EXPECT_EQ(worker().PlayOff(PlayOffOf("ok"))->results(0).detail(), state);
  EXPECT_EQ(worker().Floor(worker::v1::FloorRequest())->timing().median_us(), 2);
  worker().Release();
  EXPECT_EQ(Trial("ok").detail(), state);
}

TEST_F(DeviceWorkerTest, ACallersThreadMayEndWithoutTheProcess) {
  std::thread([&] { EXPECT_TRUE(worker().Prepare(PrepareOf(5)).ok()); }).join();
  EXPECT_THAT(Trial("ok").detail(), HasSubstr("prepares 1"));
  const std::string pid = Pid(Trial("ok").detail());
  std::thread([&] { Trial("ok"); }).join();
  EXPECT_EQ(Pid(Trial("ok").detail()), pid);
}

TEST_F(DeviceWorkerTest, ACrashIsAVerdictAndTheProblemIsPreparedAgain) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const std::string before = Trial("ok").detail();
  const worker::v1::TrialResponse crash = Trial("segv");
  EXPECT_EQ(crash.verdict(), v1::VERDICT_CRASHED);
  EXPECT_THAT(crash.detail(), HasSubstr("killed by SIGSEGV"));
  const std::string after = Trial("ok").detail();
  EXPECT_NE(Pid(before), Pid(after));
  EXPECT_THAT(after, HasSubstr("seed 5 prepares 1"));
}

TEST_F(DeviceWorkerTest, AHangIsKilledAtTheDeadlineAndAVerdictTheSecondTime) {
  options_.trial_timeout = absl::Seconds(1);
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const std::string before = Trial("ok").detail();
  const worker::v1::TrialResponse hang = Trial("hang");
  EXPECT_EQ(hang.verdict(), v1::VERDICT_TIMEOUT);
  EXPECT_EQ(hang.detail(), "no answer within 1s (2 tries, each in a fresh worker)");
  EXPECT_TRUE(HasNoChildren());
  EXPECT_NE(Pid(Trial("ok").detail()), Pid(before));
}

TEST_F(DeviceWorkerTest, AFaultOfTheDeviceIsACrashAndEndsTheProcess) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const worker::v1::TrialResponse fault = Trial("aborted");
  EXPECT_EQ(fault.verdict(), v1::VERDICT_CRASHED);
  EXPECT_THAT(fault.detail(), HasSubstr("illegal address"));
  EXPECT_TRUE(HasNoChildren());
  EXPECT_THAT(Trial("ok").detail(), HasSubstr("seed 5"));
}

// A card that has fallen off the bus, or has lost memory: nothing works in that process any more, nobody is blamed.
TEST_F(DeviceWorkerTest, ALostDeviceIsNobodysFaultAndTheNextCallHasAFreshProcess) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const pid_t before = Process();
  EXPECT_EQ(worker().Trial(TrialOf("lost")).status().code(), absl::StatusCode::kInternal) << "no verdict";
  EXPECT_TRUE(HasNoChildren());
  EXPECT_NE(Process(), before);
  EXPECT_THAT(Trial("ok").detail(), HasSubstr("seed 5 prepares 1"));
}

TEST_F(DeviceWorkerTest, WhatMayBeTheHostsFaultIsTriedAgainInAFreshWorker) {
  options_.trial_timeout = absl::Seconds(3);
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  for (const char* what : {"terminate", "stop", "hang"}) {
    const worker::v1::TrialResponse response = Trial(Once(what));
    EXPECT_EQ(response.verdict(), v1::VERDICT_OK) << what;
    EXPECT_THAT(response.detail(), HasSubstr("seed 5 prepares 1"));
  }
}

TEST_F(DeviceWorkerTest, AVariantThatEndsTenFreshWorkersIsACrash) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  EXPECT_EQ(Trial("terminate").verdict(), v1::VERDICT_CRASHED);
  EXPECT_EQ(Trial("terminate").detail(), "the device worker was killed by SIGTERM (10 tries, each in a fresh worker)");
  EXPECT_EQ(Trial("stop").verdict(), v1::VERDICT_CRASHED);
  EXPECT_THAT(Trial("stop").detail(), HasSubstr("was stopped by a signal"));
  EXPECT_EQ(Trial("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(DeviceWorkerTest, AVariantThatMakesThreeFreshWorkersBabbleIsACrash) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const worker::v1::TrialResponse garbage = Trial("garbage");
  EXPECT_EQ(garbage.verdict(), v1::VERDICT_CRASHED);
  EXPECT_EQ(garbage.detail(),
            "the device worker's answer was 4 bytes that are no attune.worker.v1.Response (3 tries, each in a fresh "
            "worker)");
  EXPECT_EQ(Trial("oversized").verdict(), v1::VERDICT_CRASHED);
  EXPECT_THAT(Trial("lie").detail(), HasSubstr("an answer that no worker gives: verdict"));
  EXPECT_EQ(Trial(Once("garbage")).verdict(), v1::VERDICT_OK);
  EXPECT_THAT(Trial("ok").detail(), HasSubstr("seed 5"));
}

TEST_F(DeviceWorkerTest, AKillWhileItPreparesOrPlaysOffOrMeasuresTheFloorIsTriedAgain) {
  EXPECT_TRUE(worker().Prepare(PrepareOf(5, Once("terminate"))).ok());
  EXPECT_TRUE(worker().PlayOff(PlayOffOf(Once("stop"))).ok());
  worker::v1::FloorRequest floor;
  floor.set_artifact(absl::StrCat("once ", directory_.path(), "/floor terminate"));
  EXPECT_TRUE(worker().Floor(floor).ok());
  EXPECT_THAT(Trial("ok").detail(), HasSubstr("seed 5"));
}

TEST_F(DeviceWorkerTest, AKillWhileTheProblemIsPreparedForATrialIsTriedAgain) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5, absl::StrCat("once ", directory_.path(), "/p terminate"))).ok());
  Trial("segv");
  std::filesystem::remove(directory_.path() + "/p");
  EXPECT_EQ(Trial("ok").verdict(), v1::VERDICT_OK);
}

TEST_F(DeviceWorkerTest, AWorkerThatIsKilledWhileItStartsIsReplaced) {
  options_.emulate = Once("terminate");
  EXPECT_TRUE(worker().Prepare(PrepareOf(5)).ok());
}

TEST_F(DeviceWorkerTest, AnIdleWorkerThatIsStoppedOrKilledIsGoneAtOnceAndCostsTheNextCallNothing) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  for (const int signal : {SIGSTOP, SIGKILL}) {
    ASSERT_EQ(kill(Process(), signal), 0);
    EXPECT_TRUE(AwaitNoChildren());
    EXPECT_EQ(Trial("segv").detail(), "the device worker was killed by SIGSEGV") << "at its first try";
    EXPECT_THAT(Trial("ok").detail(), HasSubstr("seed 5 prepares 1"));
  }
}

TEST_F(DeviceWorkerTest, TheLogHasTheLossOfAnIdleWorkerAtOnceAndOnce) {
  const std::string log = directory_.path() + "/log";
  const int kept = dup(STDERR_FILENO);
  const int file = open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const pid_t pid = Process();
  dup2(file, STDERR_FILENO);
  kill(pid, SIGKILL);
  const std::string lost = absl::StrCat("pid=", pid, " cause=\"killed by SIGKILL\"");
  EXPECT_TRUE(AwaitText(log, lost));  // before anybody calls it
  EXPECT_NE(Process(), pid);
  worker_.reset();
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(file);
  const std::vector<std::string> told = absl::StrSplit(TextOf(log), "worker lost");
  EXPECT_THAT(told, ::testing::SizeIs(2)) << "once, and a worker that was ended is none";
}

TEST_F(DeviceWorkerTest, OtherCallsFailWithAnErrorAndThePlayOffIsPreparedAgain) {
  options_.play_off_timeout = absl::Seconds(1);
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(worker().PlayOff(PlayOffOf("hang")).status()));
  EXPECT_TRUE(absl::IsUnavailable(worker().PlayOff(PlayOffOf("terminate")).status()));
  EXPECT_TRUE(absl::IsUnavailable(worker().PlayOff(PlayOffOf("segv")).status()));
  EXPECT_EQ(worker().PlayOff(PlayOffOf("garbage")).status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(absl::IsNotFound(worker().PlayOff(PlayOffOf("error")).status()));
  EXPECT_THAT(worker().PlayOff(PlayOffOf("ok"))->results(0).detail(), HasSubstr("seed 5 prepares 1"));
}

TEST_F(DeviceWorkerTest, APlayOffOfOneHasSomebodyToBlame) {
  options_.play_off_timeout = absl::Seconds(1);
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const auto verdict = [this](const char* what) {
    worker::v1::PlayOffRequest request = PlayOffOf(what);
    request.mutable_candidates()->RemoveLast();
    absl::StatusOr<worker::v1::PlayOffResponse> response = worker().PlayOff(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? response->results(0).verdict() : v1::VERDICT_UNSPECIFIED;
  };
  EXPECT_EQ(verdict("segv"), v1::VERDICT_CRASHED);
  EXPECT_EQ(verdict("terminate"), v1::VERDICT_CRASHED);
  EXPECT_EQ(verdict("aborted"), v1::VERDICT_CRASHED);
  EXPECT_EQ(verdict("hang"), v1::VERDICT_TIMEOUT);
  EXPECT_EQ(verdict("garbage"), v1::VERDICT_CRASHED);
}

TEST_F(DeviceWorkerTest, AProblemThatFailedToPrepareIsNotReplacedByTheOneBefore) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  EXPECT_TRUE(absl::IsUnavailable(worker().Prepare(PrepareOf(6, "segv")).status()));
  EXPECT_THAT(Trial("ok").detail(), HasSubstr("seed 0 prepares 0"));
}

TEST_F(DeviceWorkerTest, TwoNeverHoldOneDevice) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const std::string pid = Pid(Trial("ok").detail());
  const std::unique_ptr<DeviceWorker> second = MakeDeviceWorker(options_, device_);
  const absl::Status status = second->Prepare(PrepareOf(6)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("device fake:0 () is in use by process " + pid));
  worker_.reset();
  EXPECT_TRUE(second->Prepare(PrepareOf(6)).ok());
}

TEST_F(DeviceWorkerTest, SaysWhoHasTheDeviceWithoutStartingAProcess) {
  EXPECT_TRUE(worker().Available().ok()) << "nobody had it yet";
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  EXPECT_TRUE(worker().Available().ok()) << "it has the device itself";
  const std::string pid = Pid(Trial("ok").detail());
  const std::unique_ptr<DeviceWorker> second = MakeDeviceWorker(options_, device_);
  const absl::Status held = second->Available();
  EXPECT_TRUE(absl::IsFailedPrecondition(held));
  EXPECT_EQ(held, second->Open());
  EXPECT_THAT(std::string(held.message()), HasSubstr("is in use by process " + pid));
  EXPECT_EQ(Pid(Trial("ok").detail()), pid) << "the lock is the first one's still";
  worker_.reset();
  EXPECT_TRUE(second->Available().ok());
}

TEST_F(DeviceWorkerTest, AKilledProcessLeavesItsLockToTheNext) {
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Trial("segv").verdict(), v1::VERDICT_CRASHED);
    EXPECT_EQ(Trial("ok").verdict(), v1::VERDICT_OK);
  }
}

TEST_F(DeviceWorkerTest, AChildThatLeftItsGroupDoesNotKeepTheDevice) {
  options_.trial_timeout = absl::Seconds(1);
  Gate gate(directory_.path() + "/gate");
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  Trial(("escape " + gate.path()).c_str());
  gate.Reached();  // by the child
  EXPECT_EQ(Trial("hang").verdict(), v1::VERDICT_TIMEOUT);
  EXPECT_TRUE(worker().Prepare(PrepareOf(6)).ok());
  gate.Open();  // which ends it
}

TEST_F(DeviceWorkerTest, ShutdownEndsAHangingTrialWithoutAVerdict) {
  Gate gate(directory_.path() + "/gate");
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  std::thread stopper([&] {
    gate.Reached();
    worker().Shutdown();
  });
  EXPECT_TRUE(absl::IsCancelled(worker().Trial(TrialOf(gate.what().c_str())).status()));
  stopper.join();
  gate.Open();
  EXPECT_TRUE(HasNoChildren());
  EXPECT_TRUE(absl::IsCancelled(worker().Prepare(PrepareOf(5)).status()));
  EXPECT_TRUE(HasNoChildren());
}

TEST_F(DeviceWorkerTest, AnAbortedTrialEndsWithoutAVerdictAndTheNextCallHasAFreshProcess) {
  options_.trial_timeout = absl::Hours(1);  // which it does not wait for
  Gate gate(directory_.path() + "/gate");
  ASSERT_TRUE(worker().Prepare(PrepareOf(5)).ok());
  const std::string before = Pid(Trial("ok").detail());
  std::stop_source abort;
  worker().AbortWith(abort.get_token());
  std::thread canceller([&] {
    gate.Reached();
    abort.request_stop();
  });
  EXPECT_TRUE(absl::IsCancelled(worker().Trial(TrialOf(gate.what().c_str())).status()));
  canceller.join();
  gate.Open();
  EXPECT_TRUE(HasNoChildren());
  EXPECT_TRUE(absl::IsCancelled(worker().Prepare(PrepareOf(6)).status())) << "the same caller";
  EXPECT_TRUE(HasNoChildren());
  worker().AbortWith({});
  ASSERT_TRUE(worker().Prepare(PrepareOf(7)).ok());
  const std::string after = Trial("ok").detail();
  EXPECT_NE(Pid(after), before);
  EXPECT_THAT(after, HasSubstr("seed 7 prepares 1"));
}

TEST_F(DeviceWorkerTest, AnAbortedCallWaitsForNoWorkerThatDoesNotStart) {
  options_.emulate = "die";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::IsUnavailable(worker().Prepare(PrepareOf(5)).status()));
  std::stop_source abort;
  abort.request_stop();
  worker().AbortWith(abort.get_token());
  EXPECT_TRUE(absl::IsCancelled(worker().Prepare(PrepareOf(5)).status()));
}

TEST_F(DeviceWorkerTest, AWorkerThatDoesNotStartIsUnavailable) {
  options_.emulate = "die";
  const absl::Status status = worker().Prepare(PrepareOf(5)).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("exited with 7"));
}

TEST(ProbeHost, BringsBackWhatTheWorkerSays) {
  WorkerOptions options;
  options.executable = FAKE_WORKER;
  const absl::StatusOr<HostDescription> host = ProbeHost(options);
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->devices.at(0).id(), "fake:0");
  EXPECT_EQ(host->backends.at(0).compiler(), "fake 1.0");
  EXPECT_TRUE(HasNoChildren());
}

TEST(ProbeHost, SaysWhyItCannot) {
  WorkerOptions options;
  options.executable = "/nonexistent/attune-worker";
  EXPECT_THAT(std::string(ProbeHost(options).status().message()), HasSubstr("/nonexistent/attune-worker"));
}

}  // namespace
}  // namespace attune::supervisor
