// Two cards in one daemon: of one class they share code, verdicts and answers, and no times; of two classes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DeviceClassesTest : public TunerTest {
 protected:
  static v1::Device Sister(const std::string& fingerprint = "an L4") {
    v1::Device device = catalog::FakeDevice();
    device.set_id("cuda:1");
    device.set_uuid("GPU-1");
    device.set_fingerprint(fingerprint);
    return device;
  }
  static v1::TuneRequest On(const std::string& device, const std::string& problem = kProblem) {
    v1::TuneRequest request = TuneRequest(problem);
    request.set_device_id(device);
    return request;
  }
  // The variants that a card was tried with.
  std::multiset<std::string> TriedOn(const std::string& device_id) {
    std::multiset<std::string> tried;
    for (const v1::Trial& trial : store_.trials()) {
      if (trial.device_id() == device_id) tried.insert(trial.variant().text());
    }
    return tried;
  }
  absl::StatusOr<v1::GetBestResponse> Best(const std::string& device, const std::string& problem = kProblem) {
    v1::GetBestRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    request.set_device_id(device);
    request.set_policy(v1::POLICY_HOT);
    return results_->GetBest(request);
  }
  void StartTwo(supervisor::FakeDeviceWorker& other) {
    others_ = {&other};
    Start();
  }
  static supervisor::FakeDeviceWorker::Us Times(std::map<std::string, double> times) {
    return [times = std::move(times)](const worker::v1::Candidate& candidate) {
      const auto it = times.find(Seen(candidate));
      return it == times.end() ? 100.0 : it->second;
    };
  }

  supervisor::FakeDeviceWorker sister_{Sister()};
  supervisor::FakeDeviceWorker stranger_{Sister("an H200")};
};

TEST_F(DeviceClassesTest, ASisterAnswersAtOnceAndSaysWhoTimedIt) {
  SetTimes({{"32/8", 40}});
  StartTwo(sister_);
  Tune();
  const auto best = Best("cuda:1");
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(best->device_id(), "cuda:1");
  EXPECT_EQ(best->provenance_detail(), "timed on cuda:0, another NVIDIA L4");
  EXPECT_EQ(sister_.calls().size(), 0U);
}

TEST_F(DeviceClassesTest, ASisterCompilesNothingAndTimesAllItself) {
  StartTwo(sister_);
  Tune();
  const int compiles = pool_.compiles();
  const v1::Operation done = Tune(On("cuda:1"));
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(pool_.compiles(), compiles);
  EXPECT_EQ(sister_.Count("trial"), device_.Count("trial"));
  EXPECT_EQ(TriedOn("cuda:1"), TriedOn("cuda:0"));
  EXPECT_EQ(store_.trials().back().device_uuid(), "GPU-1");
  EXPECT_EQ(done.progress().trials_reused(), 0);
}

TEST_F(DeviceClassesTest, ASisterTriesNothingAgainThatFailed) {
  device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    const std::string seen = Seen(request.candidate());
    if (absl::StartsWith(seen, "16/")) response.set_verdict(v1::VERDICT_CRASHED);
    if (absl::StartsWith(seen, "64/")) response.set_verdict(v1::VERDICT_UNSTABLE);
    return response;
  });
  StartTwo(sister_);
  Tune();
  Tune(On("cuda:1"));
  EXPECT_THAT(TriedOn("cuda:1"), ElementsAre("tiles:BLOCK=32,SPLITS=1", "tiles:BLOCK=32,SPLITS=2",
                                             "tiles:BLOCK=64,SPLITS=1", "tiles:BLOCK=64,SPLITS=2"));
}

TEST_F(DeviceClassesTest, ASearchBeginsWithWhatASisterFoundFast) {
  SetTimes({{"64/2", 10}, {"16/8", 20}, {"32/4", 30}});
  StartTwo(sister_);
  Tune();
  v1::TuneRequest request = On("cuda:1");
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  request.mutable_strategy()->set_max_trials(3);
  Tune(request);
  EXPECT_THAT(TriedOn("cuda:1"),
              ElementsAre("tiles:BLOCK=16,SPLITS=1", "tiles:BLOCK=32,SPLITS=1", "tiles:BLOCK=64,SPLITS=1"));
}

TEST_F(DeviceClassesTest, TheIncumbentOfASisterIsTimedBeforeItIsReplaced) {
  SetTimes({{"32/8", 40}});
  StartTwo(sister_);
  Tune();
  sister_.ScriptUs(Times({{"64/4", 40}, {"32/8", 40.1}}));
  v1::Operation done = Tune(On("cuda:1"));
  EXPECT_FALSE(done.tune().promoted()) << done.tune().decision();
  EXPECT_EQ(done.tune().incumbent().device_id(), "cuda:0");

  sister_.ScriptUs(Times({{"64/4", 30}, {"32/8", 40}}));
  v1::TuneRequest again = On("cuda:1");
  again.set_retry_known(true);
  done = Tune(again);
  EXPECT_TRUE(done.tune().promoted()) << done.tune().decision();
  EXPECT_THAT(done.tune().decision(), HasSubstr("1.333 times as fast as the incumbent's 40.00 us"));
  EXPECT_EQ(done.tune().incumbent().device_id(), "cuda:1");
  EXPECT_EQ(Best("cuda:0")->variant().text(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_EQ(Best("cuda:0")->provenance_detail(), "timed on cuda:1, another NVIDIA L4");
  EXPECT_EQ(Best("cuda:1")->provenance_detail(), "");
}

TEST_F(DeviceClassesTest, OtherClassesShareNothing) {
  SetTimes({{"32/8", 40}});
  device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    if (absl::StartsWith(Seen(request.candidate()), "16/")) response.set_verdict(v1::VERDICT_CRASHED);
    return response;
  });
  StartTwo(stranger_);
  Tune();
  EXPECT_EQ(Best("cuda:1")->provenance(), v1::PROVENANCE_HEURISTIC);
  EXPECT_EQ(Best("cuda:1", "b1.h1.q160.d64.f16")->provenance(), v1::PROVENANCE_HEURISTIC);
  EXPECT_EQ(Best("cuda:0", "b1.h1.q160.d64.f16")->provenance(), v1::PROVENANCE_NEAREST);
  stranger_.ScriptUs(Times({{"16/8", 40}}));
  Tune(On("cuda:1"));
  EXPECT_THAT(TriedOn("cuda:1"), SizeIs(6));
  EXPECT_EQ(Best("cuda:1")->variant().text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(Best("cuda:0")->variant().text(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(DeviceClassesTest, WorkForAClassGoesToTheCardWithTheFewestJobs) {
  StartTwo(sister_);
  pool_.Hold();
  const auto first = tuner_->Tune(On("l4"));
  const auto second = tuner_->Tune(On("l4", "b1.h1.q256.d64.f16"));
  const auto third = tuner_->Tune(On("GPU-1", "b1.h1.q512.d64.f16"));
  const auto fourth = tuner_->Tune(On("l4", "b1.h1.q64.d64.f16"));
  EXPECT_THAT(first->title(), HasSubstr("on cuda:0"));
  EXPECT_THAT(second->title(), HasSubstr("on cuda:1"));
  EXPECT_THAT(third->title(), HasSubstr("on cuda:1"));
  EXPECT_THAT(fourth->title(), HasSubstr("on cuda:0"));
  pool_.Go();
  for (const auto& started : {first, second, third, fourth}) AwaitStarted(started);
}

TEST_F(DeviceClassesTest, TheSameRequestForAClassJoinsWhicheverCardHasIt) {
  StartTwo(sister_);
  pool_.Hold();
  v1::TuneRequest request = On("l4");
  request.set_request_id("nightly");
  const auto first = tuner_->Tune(request);
  EXPECT_EQ(tuner_->Tune(On("l4"))->name(), first->name());
  EXPECT_EQ(tuner_->Tune(On("cuda:0"))->name(), first->name());
  EXPECT_NE(tuner_->Tune(On("cuda:1"))->name(), first->name()) << "that card was named";
  EXPECT_EQ(tuner_->Tune(request)->name(), first->name());
  pool_.Go();
  AwaitStarted(first);
  Start();
  EXPECT_EQ(tuner_->Tune(request)->name(), first->name()) << "the store knows the request by its card";
}

TEST_F(DeviceClassesTest, UnknownNamesListWhatIsHere) {
  StartTwo(stranger_);
  EXPECT_THAT(std::string(tuner_->Tune(On("b200")).status().message()),
              HasSubstr("this host has cuda:0 (l4-an L), cuda:1 (l4-an H)"));
  EXPECT_THAT(store_.trials(), IsEmpty());
}

}  // namespace
}  // namespace attune::jobs
