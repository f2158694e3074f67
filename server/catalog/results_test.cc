#include "server/catalog/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <thread>

#include "proto/attune/domain.h"
#include "server/base/reason.h"
#include "server/base/sha256.h"
#include "server/catalog/nearest.h"
#include "server/catalog/testing/fake_host.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;

class ResultsTest : public jobs::TunerTest {
 protected:
  Host Today() {
    Host host = FakeHost();
    host.devices = {device_.device()};
    return host;
  }
  std::unique_ptr<Results> Open(Host host) {
    absl::StatusOr<std::unique_ptr<Results>> results = Results::Load(store_, hosts_.emplace_back(std::move(host)));
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }
  static v1::GetBestRequest Ask(const std::string& problem) {
    v1::GetBestRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    request.set_device_id("cuda:0");
    request.set_policy(v1::POLICY_HOT);
    return request;
  }
  void TuneOne(std::map<std::string, double> times = {{"32/8", 40}}) {
    SetTimes(std::move(times));
    Start();
    Tune();
  }

  static ResultKey Key() { return {kProblem, "an L4", v1::POLICY_HOT}; }

  std::list<Host> hosts_;  // of Open
};

TEST_F(ResultsTest, WhatWasTunedIsExact) {
  TuneOne();
  const auto best = Open(Today())->GetBest(Ask(kProblem));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(best->device_id(), "cuda:0");
  EXPECT_EQ(best->recipe().launches(0).grid().x(), 8);
  EXPECT_EQ(best->timing().median_us(), 40);
  EXPECT_FALSE(best->artifact_sha256().empty());
  EXPECT_TRUE(best->artifact().empty());
  EXPECT_FALSE(best->trial().empty());
}

TEST_F(ResultsTest, HasThePlayOffsTimeAndItsDate) {
  device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    *response.mutable_timing() = supervisor::TimingOf(120);
    return response;
  });
  TuneOne({});
  const auto results = Open(Today());
  const auto best = results->GetBest(Ask(kProblem));
  EXPECT_EQ(best->timing().median_us(), 100);
  EXPECT_EQ(best->measure_time().SerializeAsString(), best->promote_time().SerializeAsString());
  EXPECT_FALSE(best->pinned());
  EXPECT_EQ(results->GetBest(Ask("b1.h1.q160.d64.f16"))->measure_time().seconds(), best->measure_time().seconds())
      << "of the problem it comes from";
}

TEST_F(ResultsTest, VariantsThatCannotBeToldApartMakeATie) {
  TuneOne({{"32/8", 40}, {"64/4", 40.1}});
  const auto best = Open(Today())->GetBest(Ask(kProblem));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_TIE);
  EXPECT_EQ(best->provenance_detail(), "with 1 other variant");
  ASSERT_EQ(best->ties_size(), 1);
  EXPECT_NE(best->ties(0).text(), best->variant().text());
}

TEST_F(ResultsTest, ATieIsFoundHoweverManySlowerTrialsAreNewer) {
  TuneOne({{"32/8", 40}, {"64/4", 40.1}});
  v1::Trial slow = store_.trials().front();
  *slow.mutable_timing() = supervisor::TimingOf(500);
  for (int i = 0; i < 100; ++i) {
    slow.mutable_variant()->set_text(absl::StrCat("tiles:SLOW=", i));
    ASSERT_TRUE(store_.AppendTrial(slow, {}).ok());
  }
  EXPECT_EQ(Open(Today())->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_TIE);
}

TEST_F(ResultsTest, AChangeOfWhatItDependsOnMakesItStaleAndSaysWhy) {
  TuneOne();
  Host host = Today();
  host.families = Families(SearchFamily("source two"));
  host.backends[0].set_compiler("fakec 2.0");
  host.devices[0].set_driver("999.9");
  const auto best = Open(host)->GetBest(Ask(kProblem));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_STALE);
  EXPECT_THAT(best->provenance_detail(), HasSubstr("source of tiles changed"));
  EXPECT_THAT(best->provenance_detail(), HasSubstr("toolchain was fakec 1.0, is fakec 2.0"));
  EXPECT_THAT(best->provenance_detail(), HasSubstr("driver was 580.1, is 999.9"));
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(ResultsTest, AnAnswerWhoseFamilyHasOneMoreParameterNowIsGivenAsItWasMeasured) {
  TuneOne();
  Host host = Today();
  host.families = Families(MakeFamily(R"(
    name: "tiles" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "BLOCK" values: [16, 32, 64] binding: BINDING_COMPILE_TIME guess: 32 }
    parameters { name: "SKIP" values: [0, 1] binding: BINDING_COMPILE_TIME guess: 0 }
    parameters { name: "SPLITS" values: [1, 2] binding: BINDING_LAUNCH_TIME guess: 1 }
    launches { entry: "attention" grid_x: "ceil_div(seq_q, BLOCK) * SPLITS" block_x: "128" main: true })",
                                      "source two"));
  const auto results = Open(host);
  const auto best = results->GetBest(Ask(kProblem));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_STALE);
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(best->recipe().launches(0).grid().x(), 8);
  EXPECT_FALSE(best->artifact_sha256().empty());
  // It is nobody's neighbour: today's family has no such variant.
  EXPECT_EQ(results->GetBest(Ask("b1.h1.q160.d64.f16"))->provenance(), v1::PROVENANCE_HEURISTIC);
}

// A second card; of the class of the first unless told otherwise.
v1::Device Second(const std::string& fingerprint = "an L4") {
  v1::Device device = FakeDevice();
  device.set_id("cuda:1");
  device.set_uuid("GPU-1");
  device.set_fingerprint(fingerprint);
  return device;
}

v1::GetBestRequest On(const std::string& device, v1::GetBestRequest request) {
  request.set_device_id(device);
  return request;
}

TEST_F(ResultsTest, EveryCardOfAClassHasItsAnswers) {
  TuneOne();
  Host host = Today();
  host.devices.push_back(Second());
  const auto results = Open(host);
  const auto best = results->GetBest(On("cuda:1", Ask(kProblem)));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(best->device_id(), "cuda:1");
  EXPECT_EQ(best->provenance_detail(), "timed on cuda:0, another NVIDIA L4");
  EXPECT_EQ(results->GetBest(Ask(kProblem))->provenance_detail(), "");
  const auto near = results->GetBest(On("cuda:1", Ask("b1.h1.q160.d64.f16")));
  EXPECT_EQ(near->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_EQ(near->device_id(), "cuda:1");
  EXPECT_EQ(near->provenance_detail(), "from b1.h1.q128.d64.f16; timed on cuda:0, another NVIDIA L4");
  EXPECT_EQ(results->GetBest(Ask("b1.h1.q160.d64.f16"))->device_id(), "cuda:0");
}

TEST_F(ResultsTest, ADeviceIsNamedByIdUuidOrClass) {
  TuneOne();
  Host host = Today();
  host.devices.insert(host.devices.begin(), Second());
  for (v1::Device& device : host.devices) device.set_class_alias("l4");
  const auto results = Open(host);
  const auto by_uuid = results->GetBest(On("GPU-1", Ask(kProblem)));
  ASSERT_TRUE(by_uuid.ok()) << by_uuid.status();
  EXPECT_EQ(by_uuid->device_id(), "cuda:1");
  const auto by_class = results->GetBest(On("l4", Ask(kProblem)));
  ASSERT_TRUE(by_class.ok()) << by_class.status();
  EXPECT_EQ(by_class->device_id(), "cuda:0") << "the one of them that timed it";
  EXPECT_EQ(by_class->provenance_detail(), "");
  EXPECT_THAT(std::string(results->GetBest(On("b200", Ask(kProblem))).status().message()),
              HasSubstr("available devices: cuda:1 (l4), cuda:0 (l4)"));
}

TEST_F(ResultsTest, AnotherClassHasNoneOfTheAnswers) {
  TuneOne();
  Host host = Today();
  host.devices.push_back(Second("an H200"));
  const auto results = Open(host);
  for (const char* problem : {kProblem, "b1.h1.q160.d64.f16"}) {
    EXPECT_EQ(results->GetBest(On("cuda:1", Ask(problem)))->provenance(), v1::PROVENANCE_HEURISTIC) << problem;
  }
}

TEST_F(ResultsTest, ASisterAnswersForACardThatIsGone) {
  TuneOne();
  Host host = Today();
  host.devices = {Second()};
  const auto best = Open(host)->GetBest(On("cuda:1", Ask(kProblem)));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(best->provenance_detail(), "timed on another NVIDIA L4, which is no longer here");
}

TEST_F(ResultsTest, ACardWhoseClassHasChangedKeepsItsAnswersAsStaleUntilItHasNewOnes) {
  TuneOne();
  Host host = Today();
  host.devices[0].set_fingerprint("an L4 with more shared memory");
  const auto results = Open(host);
  const auto stale = results->GetBest(Ask(kProblem));
  ASSERT_TRUE(stale.ok()) << stale.status();
  EXPECT_EQ(stale->provenance(), v1::PROVENANCE_STALE);
  EXPECT_EQ(stale->provenance_detail(), "cuda:0 is another device or has other limits");
  const ResultKey key{kProblem, "an L4 with more shared memory", v1::POLICY_HOT};
  EXPECT_FALSE(results->Served(key)->has_value()) << "the class has none of its own";
  EXPECT_TRUE(results->Unpin(key).ok()) << "what is served can be named";
  EXPECT_EQ(results->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_STALE);

  v1::Trial trial = store_.trials().front();
  trial.mutable_dependencies()->set_device_fingerprint(key.device_class);
  v1::Incumbent own;
  own.set_problem_text(kProblem);
  *own.mutable_problem() = trial.problem();
  own.set_policy(v1::POLICY_HOT);
  own.mutable_trial()->set_name(*store_.AppendTrial(trial, {}));
  ASSERT_TRUE(results->Promote(own, std::nullopt, {}).ok());
  EXPECT_EQ(results->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(Open(host)->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(Open(Today())->GetBest(Ask(kProblem))->variant().text(), "tiles:BLOCK=32,SPLITS=2")
      << "the former class has its own still";
}

TEST_F(ResultsTest, BaselinesOfEveryCardOfTheClassComeAlong) {
  TuneOne();
  Host host = Today();
  host.devices.push_back(Second());
  host.devices.push_back(Second("an H200"));
  host.devices.back().set_id("cuda:2");
  const auto results = Open(host);
  for (const char* device : {"cuda:0", "cuda:1", "cuda:2"}) {
    v1::Baseline baseline;
    baseline.set_problem_text(kProblem);
    baseline.set_device_id(device);
    baseline.set_policy(v1::POLICY_HOT);
    baseline.set_contender("torch-sdpa");
    ASSERT_TRUE(results->RecordBaseline(baseline).ok());
  }
  const auto best = results->GetBest(Ask(kProblem));
  ASSERT_EQ(best->baselines_size(), 2);
  // Newest first.
  EXPECT_EQ(best->baselines(0).device_id(), "cuda:1");
  EXPECT_EQ(best->baselines(1).device_id(), "cuda:0");
}

TEST_F(ResultsTest, AnAnswerForADeviceThatIsNotHereIsStillGiven) {
  TuneOne();
  Host host = Today();
  host.devices.clear();
  v1::GetBestRequest request = Ask(kProblem);
  const auto best = Open(host)->GetBest(request);
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_STALE);
}

TEST_F(ResultsTest, ALostArtifactIsSaidToBeGoneUntilItIsCompiledAgainWhateverItsBytes) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  const std::string lost = results->GetBest(request)->artifact_sha256();
  store_.LoseArtifact(lost);
  const absl::Status status = results->GetBest(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("tune ") + kProblem + " again"));

  pool_.Script([](const worker::v1::CompileRequest& request) {
    absl::StatusOr<worker::v1::CompileResponse> response = supervisor::FakeCompilePool::Plain(request);
    response->mutable_artifact()->append(" compiled again");
    return response;
  });
  Tune();
  const auto best = results->GetBest(request);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->artifact(), "code -DBLOCK=32 compiled again");
  EXPECT_EQ(best->artifact_sha256(), Sha256(best->artifact()));
  EXPECT_NE(best->artifact_sha256(), lost);
}

TEST_F(ResultsTest, CodeOfOtherSourcesDoesNotStandInForALostArtifact) {
  TuneOne();
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  const std::string lost = Open(Today())->GetBest(request)->artifact_sha256();
  Host host = Today();
  host.families = Families(SearchFamily("source two"));
  pool_.Script([](const worker::v1::CompileRequest& request) {
    absl::StatusOr<worker::v1::CompileResponse> response = supervisor::FakeCompilePool::Plain(request);
    response->mutable_artifact()->append(" of source two");
    return response;
  });
  Start(host.families);
  Tune(TuneRequest("b1.h1.q512.d64.f16"));  // compiles the same variant
  store_.LoseArtifact(lost);
  EXPECT_EQ(Open(host)->GetBest(request).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ResultsTest, ANearProblemLendsItsVariantWithARecipeOfItsOwn) {
  TuneOne();
  SetTimes({{"64/8", 30}});
  Tune(TuneRequest("b1.h1.q512.d64.f16"));
  const auto results = Open(Today());
  const auto best = results->GetBest(Ask("b1.h1.q160.d64.f16"));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_EQ(best->provenance_detail(), "from b1.h1.q128.d64.f16");
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(best->recipe().launches(0).grid().x(), 10);
  EXPECT_EQ(best->problem().seq_q(), 160);
  EXPECT_EQ(results->GetBest(Ask("b1.h1.q400.d64.f16"))->provenance_detail(), "from b1.h1.q512.d64.f16");
}

TEST_F(ResultsTest, AnotherHeadDimIsNotNearAndIsGuessed) {
  TuneOne();
  const auto best = Open(Today())->GetBest(Ask("b1.h1.q128.d128.f16"));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_HEURISTIC);
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");  // the most CTAs there are
  EXPECT_FALSE(best->has_timing());
  EXPECT_TRUE(best->trial().empty());
}

TEST_F(ResultsTest, OnlyAcceptableAnswersAreGivenAndTheRefusalSaysWhatWasTried) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest request = Ask("b1.h1.q256.d64.f16");
  request.add_acceptable(v1::PROVENANCE_EXACT);
  EXPECT_TRUE(absl::IsNotFound(results->GetBest(request).status()));
  EXPECT_THAT(std::string(results->GetBest(request).status().message()), HasSubstr("never tuned"));
  request.add_acceptable(v1::PROVENANCE_HEURISTIC);
  EXPECT_EQ(results->GetBest(request)->provenance(), v1::PROVENANCE_HEURISTIC);
  v1::GetBestRequest stale_only = Ask(kProblem);
  stale_only.add_acceptable(v1::PROVENANCE_STALE);
  EXPECT_THAT(std::string(results->GetBest(stale_only).status().message()), HasSubstr("its answer is EXACT"));
}

TEST_F(ResultsTest, NoFamilyThatAppliesIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Open(Today())->GetBest(Ask("b1.h1.q4096.d64.f16")).status()));
}

TEST_F(ResultsTest, TheArtifactComesWhenAskedFor) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  EXPECT_EQ(results->GetBest(request)->artifact(), "code -DBLOCK=32");
  // The near problem's code is the same; the guess is in the cache from tuning.
  v1::GetBestRequest near = Ask("b1.h1.q160.d64.f16");
  near.set_include_artifact(true);
  EXPECT_EQ(results->GetBest(near)->artifact(), "code -DBLOCK=32");
  v1::GetBestRequest guess = Ask("b1.h1.q128.d128.f16");
  guess.set_include_artifact(true);
  EXPECT_EQ(results->GetBest(guess)->artifact(), "code -DBLOCK=32");
}

TEST_F(ResultsTest, AGuessThatWasNeverCompiledHasNoArtifact) {
  v1::GetBestRequest request = Ask(kProblem);
  request.set_include_artifact(true);
  const auto best = Open(Today())->GetBest(request);
  ASSERT_TRUE(best.ok());
  EXPECT_TRUE(best->artifact().empty());
  EXPECT_TRUE(best->artifact_sha256().empty());
}

TEST_F(ResultsTest, WhatIsPromotedRolledBackAndRecordedIsServedAtOnce) {
  SetTimes({{"32/8", 40}});
  Start();
  EXPECT_EQ(results_->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_HEURISTIC);
  Tune();
  EXPECT_EQ(results_->GetBest(Ask(kProblem))->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(results_->GetBest(Ask("b1.h1.q160.d64.f16"))->provenance(), v1::PROVENANCE_NEAREST);

  SetTimes({{"64/4", 20}});
  v1::TuneRequest retry = TuneRequest();
  retry.set_retry_known(true);
  Tune(retry);
  EXPECT_EQ(results_->GetBest(Ask(kProblem))->variant().text(), "tiles:BLOCK=64,SPLITS=2");
  ASSERT_TRUE(results_->RollBack(Key(), "no", "").ok());
  EXPECT_EQ(results_->GetBest(Ask(kProblem))->variant().text(), "tiles:BLOCK=32,SPLITS=2");

  v1::Baseline baseline;
  baseline.set_problem_text(kProblem);
  baseline.set_device_id("cuda:0");
  baseline.set_policy(v1::POLICY_HOT);
  baseline.set_contender("torch-sdpa");
  ASSERT_TRUE(results_->RecordBaseline(baseline).ok());
  EXPECT_EQ(results_->GetBest(Ask(kProblem))->baselines_size(), 1);
}

TEST_F(ResultsTest, APinIsShownUntilItIsTakenOff) {
  TuneOne();
  v1::Incumbent pinned = **results_->Served(Key());
  pinned.set_pinned(true);
  ASSERT_TRUE(results_->Promote(pinned, *results_->Served(Key()), {}).ok());
  EXPECT_TRUE(results_->GetBest(Ask(kProblem))->pinned());
  ASSERT_TRUE(results_->Unpin(Key()).ok());
  EXPECT_FALSE(results_->GetBest(Ask(kProblem))->pinned());
}

TEST_F(ResultsTest, NothingIsPromotedOverWhatSomebodyElsePromotedMeanwhile) {
  TuneOne();
  EXPECT_TRUE(absl::IsAborted(results_->Promote(**results_->Served(Key()), std::nullopt, {}).status()));
}

TEST_F(ResultsTest, AStoreThatCannotBeReadMakesAnAnswerDoubtfulUntilItCanBeReadAgain) {
  TuneOne();
  store_.FailReads(absl::UnavailableError("the disk is gone"));
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(results_->Unpin(Key()).ok()) << "the write itself was made";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the disk is gone"));
  const uint64_t doubted = results_->version();
  auto best = results_->GetBest(Ask(kProblem));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_THAT(best->provenance_detail(), HasSubstr("may be outdated: the store cannot be read: the disk is gone"));
  EXPECT_GT(results_->version(), doubted) << "what was answered meanwhile is not to be kept";

  store_.FailReads(absl::OkStatus());
  EXPECT_EQ(results_->GetBest(Ask(kProblem))->provenance_detail(), "");
}

TEST_F(ResultsTest, BaselinesComeAlong) {
  TuneOne();
  v1::Baseline baseline;
  baseline.set_problem_text(kProblem);
  baseline.set_device_id("cuda:0");
  baseline.set_policy(v1::POLICY_HOT);
  baseline.set_contender("torch-sdpa");
  ASSERT_TRUE(store_.RecordBaseline(baseline).ok());
  baseline.set_policy(v1::POLICY_COLD);
  ASSERT_TRUE(store_.RecordBaseline(baseline).ok());
  const auto best = Open(Today())->GetBest(Ask(kProblem));
  ASSERT_EQ(best->baselines_size(), 1);
  EXPECT_EQ(best->baselines(0).contender(), "torch-sdpa");
}

TEST_F(ResultsTest, AnIncumbentOfAProblemThatIsNoLongerAllowedKeepsNoneOfTheOthersBack) {
  TuneOne();
  v1::Incumbent odd = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  odd.mutable_problem()->set_mask(v1::MASK_WINDOW);
  odd.mutable_problem()->set_window(int64_t{1} << 62);
  odd.set_problem_text("b1.h1.q128.d64.f16.window4611686018427387904");
  v1::Trial trial = *store_.GetTrial(odd.trial().name());
  *trial.mutable_problem() = odd.problem();
  trial.set_problem_text(odd.problem_text());
  odd.mutable_trial()->set_name(*store_.AppendTrial(trial, {}));
  ASSERT_TRUE(store_.Promote(odd, "", {}).ok());
  EXPECT_EQ(Open(Today())->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_EXACT);
}

TEST_F(ResultsTest, BaselinesOfAnySizeInTheStoreLeaveAnAnswerSmall) {
  TuneOne();
  v1::Baseline baseline;
  baseline.set_problem_text(kProblem);
  baseline.set_device_id("cuda:0");
  baseline.set_policy(v1::POLICY_HOT);
  for (int i = 0; i < 300; ++i) {
    baseline.set_contender(absl::StrCat("contender ", i));
    baseline.set_note(std::string(i % 2 == 0 ? 1 << 20 : 10, 'n'));  // as earlier versions took them
    ASSERT_TRUE(store_.RecordBaseline(baseline).ok());
  }
  const auto best = Open(Today())->GetBest(Ask(kProblem));
  EXPECT_EQ(best->baselines_size(), 100);
  EXPECT_LT(best->ByteSizeLong(), size_t{1} << 19);
}

TEST_F(ResultsTest, AnswersWhileIncumbentsChange) {
  TuneOne();
  const auto results = Open(Today());
  std::thread changing([&] {
    for (int i = 0; i < 200; ++i) results->TrialsAdded(Key());
  });
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(results->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_EXACT);
    EXPECT_EQ(results->GetBest(Ask("b1.h1.q160.d64.f16"))->provenance(), v1::PROVENANCE_NEAREST);
  }
  changing.join();
}

TEST_F(ResultsTest, AnswersForTheOtherLayoutFromTheSameCode) {
  TuneOne();
  const auto best = Open(Today())->GetBest(Ask(absl::StrCat(kProblem, ".bshd")));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_EQ(best->provenance_detail(), absl::StrCat("from ", kProblem));
  EXPECT_EQ(best->artifact_sha256(), Open(Today())->GetBest(Ask(kProblem))->artifact_sha256());
}

TEST_F(ResultsTest, CodeThatDependsOnTheLayoutIsNoAnswerForTheOther) {
  TuneOne();
  auto family = std::make_shared<space::Family>();
  family->manifest = SearchFamily()->manifest;
  family->sources = SearchFamily()->sources;
  family->source_hash = SearchFamily()->source_hash;
  family::v1::Named* define = family->manifest.add_defines();
  define->set_name("IS_BSHD");
  define->set_expr("is_bshd");
  Host host = Today();
  host.families = Families(family);
  const auto results = Open(host);
  EXPECT_EQ(results->GetBest(Ask("b1.h1.q160.d64.f16"))->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_EQ(results->GetBest(Ask(absl::StrCat(kProblem, ".bshd")))->provenance(), v1::PROVENANCE_HEURISTIC);
}

TEST(Nearness, CountsOctavesOfWorkAndLengths) {
  const Problem a = *ParseProblem("b2.h8.q512.d64.f16");
  EXPECT_EQ(Distance(a, a), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b4.h4.q512.d64.f16")), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h16.q1024.kv512.d64.f16")), 2);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d128.f16")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.bf16")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.causal")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.bshd")), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.sinks")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.softcap30")), std::nullopt);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.lse")), 0);
  EXPECT_EQ(Distance(a, *ParseProblem("b2.h8.q512.d64.f16.page16")), std::nullopt);
  const Problem paged = *ParseProblem("b2.h8.q512.d64.f16.varlen.page16");
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q1024.d64.f16.varlen.page16")), 2);
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q512.d64.f16.varlen")), std::nullopt);
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q512.d64.f16.bshd.page16")), std::nullopt) << "one is varlen";
  EXPECT_EQ(Distance(paged, *ParseProblem("b2.h8.q512.d64.f16.varlen.page32")), std::nullopt);
}

TEST_F(ResultsTest, TheFamilyOfHighestPrecedenceIsGuessed) {
  auto families = Families(SearchFamily());
  families.push_back(MakeFamily(R"(
    name: "zz_fast" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    guess_precedence: 1
    launches { entry: "attention" grid_x: "1" block_x: "128" main: true })",
                                "fast"));
  const auto guess = HeuristicVariant(families, *ParseProblem(kProblem), FakeDevice());
  ASSERT_TRUE(guess.ok());
  EXPECT_EQ(guess->family->name(), "zz_fast");
}

// The family of these tests with one more constraint.
std::vector<std::shared_ptr<const space::Family>> FamiliesWith(const std::string& constraint) {
  auto family = std::make_shared<space::Family>();
  family->manifest = SearchFamily()->manifest;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(constraint, family->manifest.add_constraints()));
  family->sources = SearchFamily()->sources;
  family->source_hash = SearchFamily()->source_hash;
  return Families(family);
}

TEST_F(ResultsTest, TheNearestIsLaunchedAsThisShapeIsAdvisedToBe) {
  TuneOne();
  Host host = Today();
  host.families =
      FamiliesWith(R"(expr: "SPLITS == 1 || seq_q > 100" reason: "short sequences gain nothing" advice: true)");
  const auto best = Open(host)->GetBest(Ask("b1.h1.q64.d64.f16"));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=1");
  EXPECT_EQ(best->provenance_detail(), absl::StrCat("from ", kProblem, "; for this shape SPLITS 2 to 1"));
  EXPECT_EQ(best->recipe().launches(0).grid().x(), 2);
  EXPECT_FALSE(best->artifact_sha256().empty()) << "the code is the same";
}

TEST_F(ResultsTest, NearProblemsOfferWhatTheyAreServedNearestFirstAndEachOnce) {
  SetTimes({{"32/8", 40}, {"64/16", 40}, {"16/4", 40}});
  Start();
  Tune();
  Tune(TuneRequest("b1.h1.q512.d64.f16"));
  Tune(TuneRequest("b1.h1.q64.d64.f16"));
  const auto nearby = [this](const Host& host, size_t most) {
    std::vector<std::string> texts;
    const auto results = Open(host);
    for (const space::Variant& variant :
         results->Nearby(*ParseProblem("b1.h1.q400.d64.f16"), host.devices[0], v1::POLICY_HOT, most)) {
      texts.push_back(variant.ToText());
    }
    return texts;
  };
  EXPECT_THAT(nearby(Today(), 9),
              ::testing::ElementsAre("tiles:BLOCK=64,SPLITS=2", "tiles:BLOCK=32,SPLITS=2", "tiles:BLOCK=16,SPLITS=1"));
  EXPECT_THAT(nearby(Today(), 1), ::testing::ElementsAre("tiles:BLOCK=64,SPLITS=2"));
  // Re-fitted, the two nearest may be the same.
  Host host = Today();
  host.families = FamiliesWith(R"(expr: "SPLITS == 1 && BLOCK < 64" reason: "short" advice: true)");
  const std::vector<std::string> advised = nearby(host, 9);
  EXPECT_EQ(std::set<std::string>(advised.begin(), advised.end()).size(), advised.size());
  EXPECT_THAT(advised, ::testing::Contains("tiles:BLOCK=32,SPLITS=1"));
}

TEST_F(ResultsTest, AdviceUnseatsNobody) {
  TuneOne();
  Host host = Today();
  host.families = FamiliesWith(R"(expr: "BLOCK != 32" reason: "another device's" advice: true)");
  const auto results = Open(host);
  EXPECT_EQ(results->GetBest(Ask(kProblem))->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  const auto near = results->GetBest(Ask("b1.h1.q64.d64.f16"));
  EXPECT_EQ(near->provenance(), v1::PROVENANCE_NEAREST) << "where nobody is advised, the nearest";
  EXPECT_EQ(near->variant().text(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(ResultsTest, AdviceIsWorthAnOctaveOfDistance) {
  SetTimes({{"32/4", 40}});
  Start();
  Tune();
  SetTimes({{"16/16", 40}});
  Tune(TuneRequest("b1.h1.q256.d64.f16"));
  Host host = Today();
  host.families = FamiliesWith(R"(expr: "BLOCK != 32" reason: "another device's" advice: true)");
  const auto results = Open(host);
  EXPECT_THAT(results->GetBest(Ask("b1.h1.q160.d64.f16"))->provenance_detail(), HasSubstr("from b1.h1.q256.d64.f16"));
  EXPECT_THAT(results->GetBest(Ask("b1.h1.q64.d64.f16"))->provenance_detail(),
              ::testing::StartsWith(absl::StrCat("from ", kProblem)))
      << "the other is two octaves farther";
}

class ResultRanges : public ResultsTest {
 protected:
  static v1::GetBestRequest AskRanges(const std::string& problem) {
    v1::GetBestRequest request = Ask(problem);
    request.set_include_domains(true);
    return request;
  }
  static std::string RangesOf(Results& results, const v1::GetBestRequest& request) {
    const auto best = results.GetBest(request);
    if (best.ok()) return RangesText(best->domains());
    return std::string(best.status().GetPayload(kHoldsForUrl).value_or(absl::Cord("no payload")));
  }
};

TEST_F(ResultRanges, AreGivenToThoseWhoAsk) {
  TuneOne();
  const auto results = Open(Today());
  EXPECT_EQ(results->GetBest(Ask(kProblem))->domains_size(), 0);
  EXPECT_EQ(RangesOf(*results, AskRanges(kProblem)), "q=kv 128..255");
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q100.d64.f16")), "q=kv 64..127");
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q200.d64.f16")), "q=kv 129..255") << "128 has an answer of its own";
}

TEST_F(ResultRanges, WhatHasTheAnswersProblemAloneHasNone) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest exact = AskRanges(kProblem);
  exact.add_acceptable(v1::PROVENANCE_EXACT);
  EXPECT_EQ(RangesOf(*results, exact), "") << "the others' answers are not acceptable";
}

TEST_F(ResultRanges, AnswersInThemAreWhatTheyComeTo) {
  TuneOne();
  const auto results = Open(Today());
  const auto best = results->GetBest(AskRanges(kProblem));
  ASSERT_TRUE(best.ok());
  for (const v1::Domain& domain : best->domains()) {
    for (int64_t length = domain.low(); length <= domain.high(); ++length) {
      const auto there = results->GetBest(Ask(absl::StrCat("b1.h1.q", length, ".d64.f16")));
      EXPECT_EQ(there->variant().text(), best->variant().text());
      EXPECT_EQ(there->artifact_sha256(), best->artifact_sha256());
      EXPECT_EQ(there->recipe().SerializeAsString(), RecipeAt(best->recipe(), domain, length)->SerializeAsString());
    }
  }
}

TEST_F(ResultRanges, AMissHasThemToo) {
  TuneOne();
  const auto results = Open(Today());
  v1::GetBestRequest tuned = AskRanges("b1.h1.q100.d128.f16");
  tuned.add_acceptable(v1::PROVENANCE_NEAREST);
  EXPECT_EQ(RangesOf(*results, tuned), "q=kv 64..127");
  tuned.set_include_domains(false);
  EXPECT_EQ(RangesOf(*results, tuned), "no payload");
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q100.d128.f16")), "q=kv 64..127") << "HEURISTIC";
}

TEST_F(ResultRanges, AnotherIncumbentChangesThem) {
  TuneOne();
  const auto results = Open(Today());
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q200.d64.f16")), "q=kv 129..255");
  v1::Trial trial = store_.trials().front();
  trial.set_problem_text("b1.h1.q180.d64.f16");
  *trial.mutable_problem() = ToProto(*ParseProblem(trial.problem_text()));
  v1::Incumbent next;
  next.set_problem_text(trial.problem_text());
  *next.mutable_problem() = trial.problem();
  next.set_policy(v1::POLICY_HOT);
  next.mutable_trial()->set_name(*store_.AppendTrial(trial, {}));
  const auto promoted = results->Promote(next, std::nullopt, {});
  ASSERT_TRUE(promoted.ok()) << promoted.status();
  EXPECT_EQ(RangesOf(*results, AskRanges("b1.h1.q200.d64.f16")), "q=kv 181..255");
}

TEST_F(ResultsTest, AProblemThatDiffersInLseAloneIsNearest) {
  TuneOne();
  const auto best = Open(Today())->GetBest(Ask(std::string(kProblem) + ".lse"));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_FALSE(best->artifact_sha256().empty());
}

}  // namespace
}  // namespace attune::catalog
