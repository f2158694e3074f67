#include "server/catalog/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/base/testing/logged.h"
#include "server/catalog/testing/results_fixture.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;

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

TEST_F(ResultsTest, TheTiesAreThoseOfThePlayOffWhateverTrialsSay) {
  TuneOne();
  v1::Trial overlaps = store_.trials().front();
  *overlaps.mutable_timing() = supervisor::TimingOf(40);
  overlaps.mutable_variant()->set_text("tiles:BLOCK=64,SPLITS=1");
  ASSERT_TRUE(store_.AppendTrial(overlaps, {}).ok());
  EXPECT_EQ(Open(Today())->GetBest(Ask(kProblem))->provenance(), v1::PROVENANCE_EXACT);
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
  EXPECT_THAT(Logged([&] { EXPECT_TRUE(results_->Unpin(Key()).ok()) << "the write itself was made"; }),
              HasSubstr("the disk is gone"));
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

// As one statement and one round trip each.
class CountedReads : public store::FakeStore {
 public:
  int reads = 0;

  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override {
    ++reads;
    return FakeStore::GetTrial(name);
  }
  absl::StatusOr<v1::Incumbent> GetIncumbent(absl::string_view problem, absl::string_view device_class,
                                             v1::Policy policy) override {
    ++reads;
    return FakeStore::GetIncumbent(problem, device_class, policy);
  }
  absl::StatusOr<store::Page<v1::Incumbent>> ListIncumbents(const store::IncumbentFilter& filter, int page_size,
                                                            absl::string_view token) override {
    ++reads;
    return FakeStore::ListIncumbents(filter, page_size, token);
  }
  absl::StatusOr<std::vector<v1::Incumbent>> IncumbentsOf(const std::vector<std::string>& problems) override {
    const int before = reads;
    auto incumbents = FakeStore::IncumbentsOf(problems);
    reads = before + 1;
    return incumbents;
  }
  absl::StatusOr<store::Page<v1::Baseline>> ListBaselines(absl::string_view problem, absl::string_view device,
                                                          int page_size, absl::string_view token) override {
    ++reads;
    return FakeStore::ListBaselines(problem, device, page_size, token);
  }
  absl::StatusOr<std::vector<v1::Baseline>> BaselinesOf(const std::vector<std::string>& problems) override {
    const int before = reads;
    auto baselines = FakeStore::BaselinesOf(problems);
    reads = before + 1;
    return baselines;
  }
};

TEST_F(ResultsTest, ReadsManyAnswersInAFewReads) {
  TuneOne();
  CountedReads store;
  std::vector<ResultKey> keys;
  const auto promote = [&](int seq, const std::string& before) {
    v1::Trial trial = store_.trials().front();
    trial.mutable_problem()->set_seq_q(seq);
    trial.mutable_problem()->set_seq_kv(seq);
    trial.set_problem_text(ToText(*FromProto(trial.problem())));
    v1::Incumbent next;
    next.mutable_trial()->set_name(*store.AppendTrial(trial, {}));
    ASSERT_TRUE(store.Promote(next, before, {}).ok());
    keys.push_back({trial.problem_text(), "an L4", v1::POLICY_HOT});
  };
  for (int i = 0; i < 40; ++i) promote(128 + i, "");
  v1::Baseline baseline;
  baseline.set_problem_text(kProblem);
  baseline.set_device_id("cuda:0");
  baseline.set_policy(v1::POLICY_HOT);
  baseline.set_contender("torch-sdpa");
  ASSERT_TRUE(store.RecordBaseline(baseline).ok());
  const Host host = Today();
  const auto results = Results::Load(store, host);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(store.reads, 2) << "a page, and the baselines of its problems";
  EXPECT_EQ((*results)->GetBest(Ask(kProblem))->baselines_size(), 1);
  EXPECT_EQ((*results)->GetBest(Ask("b1.h1.q150.d64.f16"))->baselines_size(), 0);

  store.reads = 0;
  ASSERT_TRUE((*results)->Reload().ok());
  EXPECT_EQ(store.reads, 2);

  // What other daemons promote.
  for (int i = 40; i < 80; ++i) promote(128 + i, "");
  store.reads = 0;
  (*results)->Reread(keys);
  EXPECT_EQ(store.reads, 2) << "incumbents, and baselines";
  for (const ResultKey& key : keys) {
    EXPECT_EQ((*results)->GetBest(Ask(key.problem_text))->provenance(), v1::PROVENANCE_EXACT) << key.problem_text;
  }
  EXPECT_EQ((*results)->GetBest(Ask(kProblem))->baselines_size(), 1);
}

TEST_F(ResultsTest, RereadsAKeyThatHasNoIncumbent) {
  TuneOne();
  const auto results = Open(Today());
  const ResultKey never{"b1.h1.q8.d64.f16", "an L4", v1::POLICY_HOT};
  results->Reread({Key(), never});
  EXPECT_TRUE(results->IsTuned(Key()));
  EXPECT_FALSE(results->IsTuned(never));
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

}  // namespace
}  // namespace attune::catalog
