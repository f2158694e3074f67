// --on_miss: what is started for what nobody has tuned, and when.
#include "server/jobs/on_miss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/catalog/misses.h"
#include "server/catalog/retry_trials.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Knows what was condemned.
class CondemnedCodes : public catalog::CodeSupply {
 public:
  catalog::CodeState Ask(const catalog::AnswerPtr&) override { return {}; }
  catalog::CodeState AskForLost(const catalog::AnswerPtr&) override { return {}; }
  void Condemn(absl::string_view compile_key, std::string why) override {
    why_.try_emplace(std::string(compile_key), std::move(why));
  }
  bool IsUseless(absl::string_view compile_key) const override { return why_.contains(std::string(compile_key)); }
  uint64_t useless() const override { return why_.size(); }
  void ForgetUseless() override { why_.clear(); }
  uint64_t version() const override { return why_.size(); }
  void Await(absl::string_view, absl::Duration, std::function<void()> known) override { known(); }

  std::map<std::string, std::string> why_;  // by compile key
};

class OnMissTest : public TunerTest {
 protected:
  static constexpr char kOther[] = "b1.h1.q256.d64.f16";
  static constexpr char kThird[] = "b1.h1.q512.d64.f16";

  OnMiss& Begin(OnMiss::Options options) {
    options.clock = [this] { return now_; };
    on_miss_ = std::make_unique<OnMiss>(OnMiss::Means{*tuner_, misses_, supply_, store_, host_}, options);
    return *on_miss_;
  }
  OnMiss& BeginTuning() { return Begin({}); }
  OnMiss& BeginChecking() { return Begin({.what = OnMiss::What::kCheck}); }

  // A client asks `times` times, and gets `variant`, or what there is.
  void Ask(const std::string& problem, int times = 1, const std::string& variant = "") {
    v1::GetBestRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    request.set_device_id("cuda:0");
    request.set_policy(v1::POLICY_HOT);
    absl::StatusOr<v1::GetBestResponse> answer = results_->GetBest(request);
    if (!variant.empty()) answer->mutable_variant()->set_text(variant);
    const catalog::MissPtr miss =
        misses_.Note({problem, "an L4", v1::POLICY_HOT}, device_.device(), answer, absl::Now());
    for (int i = 0; miss != nullptr && i < times; ++i) miss->Count(absl::Now());
  }

  // The titles of all jobs, oldest first.
  std::vector<std::string> Titles() {
    std::vector<std::string> titles;
    for (const v1::Operation& operation : Jobs()) titles.insert(titles.begin(), operation.title());
    return titles;
  }
  std::vector<v1::Operation> Jobs() { return store_.queue().List({}, 100, "")->items; }
  void AwaitJobs() {
    for (const v1::Operation& operation : Jobs()) Await(operation.name());
    // A job is done before its lane is free.
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!tuner_->IsIdle("cuda:0") && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_TRUE(tuner_->IsIdle("cuda:0"));
  }
  // Looks, and sees what that starts to its end.
  void LookAndAwait(OnMiss& on_miss) {
    on_miss.Look();
    AwaitJobs();
  }

  absl::Duration now_ = absl::Hours(100);
  CondemnedCodes supply_;
  catalog::Misses misses_{[this](const catalog::ResultKey& key) { return results_->IsTuned(key); }};
  std::unique_ptr<OnMiss> on_miss_;
};

TEST_F(OnMissTest, TunesWhatWasAskedForMostOftenFirstAndEachOnce) {
  Start();
  OnMiss& on_miss = BeginTuning();
  Ask(kProblem);
  Ask(kOther, 3);
  for (int look = 0; look < 4; ++look) LookAndAwait(on_miss);
  EXPECT_THAT(Titles(), ElementsAre("tune on a miss b1.h1.q256.d64.f16 on cuda:0",
                                    "tune on a miss b1.h1.q128.d64.f16 on cuda:0"));
  EXPECT_THAT(Served(kOther), HasSubstr("tiles:"));
  EXPECT_THAT(misses_.List("", 10, "")->items, IsEmpty());
}

TEST_F(OnMissTest, ASearchIsSmallAndBeginsWithWhatNeighboursFoundBest) {
  SetTimes({{"64/4", 40}});
  Start();
  Tune();
  ASSERT_EQ(Served(), "tiles:BLOCK=64,SPLITS=2");
  AwaitJobs();
  OnMiss& on_miss = Begin({.trials = 2});
  Ask(kOther);
  LookAndAwait(on_miss);
  std::vector<std::string> tried;
  for (const v1::Trial& trial : store_.trials()) {
    if (trial.problem_text() == kOther) tried.push_back(trial.variant().text());
  }
  EXPECT_THAT(tried, ElementsAre("tiles:BLOCK=64,SPLITS=2", "tiles:BLOCK=32,SPLITS=2"));
}

TEST_F(OnMissTest, StartsNothingWhileAnotherJobWantsTheDevice) {
  std::promise<void> go;
  const std::shared_future<void> gone(go.get_future());
  device_.ScriptTrial([this, gone](const worker::v1::TrialRequest& request) {
    EXPECT_EQ(gone.wait_for(kPatience), std::future_status::ready);
    return absl::StatusOr<worker::v1::TrialResponse>(device_.Good(request.candidate()));
  });
  Start();
  OnMiss& on_miss = BeginTuning();
  Ask(kOther);
  v1::TuneRequest background = TuneRequest();
  background.set_background(true);
  ASSERT_TRUE(tuner_->Tune(background).ok());
  on_miss.Look();
  EXPECT_THAT(Jobs(), SizeIs(1));
  go.set_value();
  AwaitJobs();
  on_miss.Look();
  EXPECT_THAT(Jobs(), SizeIs(2));
  AwaitJobs();
}

TEST_F(OnMissTest, StartsNoMoreInAnHourThanAllowed) {
  Start();
  OnMiss& on_miss = Begin({.per_hour = 2});
  for (const char* problem : {kProblem, kOther, kThird}) Ask(problem);
  for (int look = 0; look < 4; ++look) LookAndAwait(on_miss);
  EXPECT_THAT(Jobs(), SizeIs(2));
  now_ += absl::Minutes(59);
  LookAndAwait(on_miss);
  EXPECT_THAT(Jobs(), SizeIs(2));
  now_ += absl::Minutes(1);
  LookAndAwait(on_miss);
  EXPECT_THAT(Jobs(), SizeIs(3));
}

TEST_F(OnMissTest, WhatFailsIsLeftAloneForAWhileAndSoIsTheDevice) {
  device_.set_open(absl::FailedPreconditionError("another daemon has it"));
  Start();
  OnMiss& on_miss = BeginTuning();
  Ask(kOther, 2);
  Ask(kThird);
  for (int look = 0; look < 3; ++look) LookAndAwait(on_miss);
  EXPECT_THAT(Titles(), ElementsAre("tune on a miss b1.h1.q256.d64.f16 on cuda:0"));
  now_ += absl::Minutes(1);
  for (int look = 0; look < 3; ++look) LookAndAwait(on_miss);
  EXPECT_EQ(Titles().back(), "tune on a miss b1.h1.q512.d64.f16 on cuda:0");
  now_ += absl::Minutes(1);
  LookAndAwait(on_miss);
  EXPECT_THAT(Titles(), SizeIs(2)) << "longer after the second failure";
  device_.set_open(absl::OkStatus());
  now_ += absl::Hours(1);
  for (int look = 0; look < 3; ++look) LookAndAwait(on_miss);
  EXPECT_THAT(Titles(), SizeIs(4));
  EXPECT_THAT(misses_.List("", 10, "")->items, IsEmpty());
}

TEST_F(OnMissTest, WhatSomebodyCancelledIsLeftAlone) {
  device_.ScriptTrial([this](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    std::promise<void> aborted;
    const std::stop_callback cut(device_.abort(), [&] { aborted.set_value(); });
    EXPECT_EQ(aborted.get_future().wait_for(kPatience), std::future_status::ready);
    return absl::CancelledError("the job was cancelled");
  });
  Start();
  OnMiss& on_miss = BeginTuning();
  Ask(kOther);
  on_miss.Look();
  ASSERT_THAT(Jobs(), SizeIs(1));
  ASSERT_TRUE(tuner_->Cancel(Jobs()[0].name()).ok());
  AwaitJobs();
  LookAndAwait(on_miss);
  now_ += absl::Minutes(30);
  LookAndAwait(on_miss);
  EXPECT_THAT(Jobs(), SizeIs(1));
}

TEST_F(OnMissTest, WhatNoFamilyFitsCostsNoJob) {
  Start();
  OnMiss& on_miss = BeginTuning();
  Ask("b1.h1.q2048.d64.f16", 9);
  Ask(kOther);
  LookAndAwait(on_miss);
  EXPECT_THAT(Titles(), ElementsAre("tune on a miss b1.h1.q256.d64.f16 on cuda:0"));
}

TEST_F(OnMissTest, ACheckTriesTheAnswersVariantOnceAndServesNothing) {
  Start();
  OnMiss& on_miss = BeginChecking();
  Ask(kOther);
  for (int look = 0; look < 3; ++look) LookAndAwait(on_miss);
  ASSERT_THAT(Titles(), ElementsAre("check on a miss b1.h1.q256.d64.f16 on cuda:0: tiles:BLOCK=32,SPLITS=2"));
  EXPECT_EQ(Jobs()[0].evaluate().decision(), v1::EvaluateResult::DECISION_CHECKED);
  EXPECT_EQ(Jobs()[0].evaluate().trial().verdict(), v1::VERDICT_OK);
  ASSERT_THAT(store_.trials(), SizeIs(1));
  EXPECT_FALSE(store_.GetIncumbent(kOther, "an L4", v1::POLICY_HOT).ok());
  EXPECT_THAT(supply_.why_, IsEmpty());
  // Another answer is another matter.
  Ask(kOther, 1, "tiles:BLOCK=16,SPLITS=1");
  for (int look = 0; look < 3; ++look) LookAndAwait(on_miss);
  EXPECT_THAT(store_.trials(), SizeIs(2));
  // What the store knows is not asked for again after a restart.
  OnMiss& next = BeginChecking();
  for (int look = 0; look < 3; ++look) LookAndAwait(next);
  EXPECT_THAT(Jobs(), SizeIs(2));
}

TEST_F(OnMissTest, CodeThatACheckFindsWrongIsCondemnedAlsoAfterARestart) {
  device_.ScriptTrial([](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse wrong;
    wrong.set_verdict(v1::VERDICT_WRONG_RESULT);
    wrong.set_detail("output 3 is 7");
    return wrong;
  });
  Start();
  OnMiss& on_miss = BeginChecking();
  Ask(kOther);
  for (int look = 0; look < 2; ++look) LookAndAwait(on_miss);
  ASSERT_THAT(supply_.why_, SizeIs(1));
  EXPECT_EQ(supply_.why_.begin()->second, "for b1.h1.q256.d64.f16 it ended with WRONG_RESULT: output 3 is 7");
  supply_.ForgetUseless();
  BeginChecking().Look();
  EXPECT_THAT(supply_.why_, SizeIs(1));
  EXPECT_THAT(Jobs(), SizeIs(1));
}

TEST_F(OnMissTest, WhereNothingIsRightTheSearchEndsAndItsGuessIsCondemned) {
  device_.ScriptTrial([](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse wrong;
    wrong.set_verdict(v1::VERDICT_WRONG_RESULT);
    return wrong;
  });
  Start();
  OnMiss& on_miss = BeginTuning();
  Ask(kOther);
  for (int look = 0; look < 3; ++look) LookAndAwait(on_miss);
  EXPECT_THAT(Jobs(), SizeIs(1));
  EXPECT_THAT(supply_.why_, SizeIs(1));
}

}  // namespace
}  // namespace attune::jobs
