// Tune: from a request to a served winner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "server/jobs/testing/tuner_fixture.h"
#include "server/space/space.h"

namespace attune::jobs {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

using TuneTest = TunerTest;

TEST_F(TuneTest, TriesEveryVariantOnceAndServesTheFastest) {
  SetTimes({{"32/8", 40}, {"64/4", 50}});
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_THAT(Tries(), SizeIs(6));
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 1)));
  EXPECT_TRUE(done.tune().promoted());
  EXPECT_EQ(done.tune().winner().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_DOUBLE_EQ(done.tune().floor_us(), 1.5);
  EXPECT_EQ(done.progress().phase(), v1::OperationProgress::PHASE_DONE);
  EXPECT_EQ(done.progress().trials_done(), 6);
  EXPECT_EQ(done.progress().trials_total(), 6);
  EXPECT_EQ(done.progress().best().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  const absl::StatusOr<v1::Incumbent> served = store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  ASSERT_TRUE(served.ok());
  EXPECT_EQ(served->trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(served->job(), done.name());
  EXPECT_EQ(changes(), 1);
}

TEST_F(TuneTest, ATrialSaysAllItDependsOn) {
  Start();
  const v1::Operation done = Tune();
  for (const v1::Trial& trial : store_.trials()) {
    EXPECT_EQ(trial.verdict(), v1::VERDICT_OK);
    EXPECT_EQ(trial.dependencies().source_hash(), "source one");
    EXPECT_EQ(trial.dependencies().toolchain(), "fakec 1.0");
    EXPECT_EQ(trial.dependencies().driver(), "580.1");
    EXPECT_EQ(trial.dependencies().device_fingerprint(), "an L4");
    EXPECT_EQ(trial.job(), done.name());
    EXPECT_EQ(trial.recipe().launches_size(), 1);
    EXPECT_GT(trial.geometry().ctas(), 0);
    EXPECT_EQ(trial.resources().registers(), 32);
    EXPECT_FALSE(trial.artifact_sha256().empty());
    EXPECT_GT(trial.timing().median_us(), 0);
    EXPECT_EQ(trial.accuracy().cases(), 4);
  }
}

TEST_F(TuneTest, VariantsThatDifferAtLaunchAloneShareACompile) {
  Start();
  Tune();
  EXPECT_EQ(pool_.compiles(), 3 + 2 + 1);  // BLOCK's values, both references, the floor
}

TEST_F(TuneTest, WhatIsKnownIsNeitherCompiledNorTriedAgain) {
  Start();
  Tune();
  const int compiles = pool_.compiles();
  const int trials = device_.Count("trial");
  const v1::Operation again = Tune();
  EXPECT_EQ(again.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(pool_.compiles(), compiles);
  EXPECT_EQ(device_.Count("trial"), trials);
  EXPECT_EQ(again.progress().trials_reused(), 6);
  EXPECT_FALSE(again.tune().promoted());
}

TEST_F(TuneTest, RetryKnownTriesAgain) {
  Start();
  Tune();
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  Tune(request);
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 2)));
}

TEST_F(TuneTest, AChangedSourceIsTriedAnewAndTheStaleIncumbentTakesPart) {
  SetTimes({{"32/8", 40}});
  Start();
  Tune();
  SetTimes({{"32/8", 40}, {"64/4", 40.1}});
  Start(Families(SearchFamily("source two")));
  const v1::Operation done = Tune();
  EXPECT_THAT(Tries(), Each(Pair(::testing::_, 2)));
  EXPECT_TRUE(done.tune().promoted());
  EXPECT_EQ(done.tune().incumbent().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(done.tune().incumbent().trial().dependencies().source_hash(), "source two");
  EXPECT_THAT(done.tune().decision(), HasSubstr("today's dependencies"));
}

TEST_F(TuneTest, AnIncumbentKeepsItsPlaceInATie) {
  SetTimes({{"32/8", 40}});
  Start();
  Tune();
  SetTimes({{"32/8", 40}, {"64/4", 39.9}});
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  const v1::Operation done = Tune(request);
  EXPECT_FALSE(done.tune().promoted());
  EXPECT_EQ(done.tune().incumbent().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(done.tune().play_off_size(), 2);
}

TEST_F(TuneTest, ARetainedIncumbentIsServedWithTheTimeOfTheLastPlayOff) {
  SetTimes({{"32/8", 40}});
  Start();
  const v1::Incumbent first = Tune().tune().incumbent();
  SetTimes({{"32/8", 20}});
  const v1::Operation done = Tune();
  EXPECT_FALSE(done.tune().promoted());
  EXPECT_THAT(done.tune().decision(), HasSubstr("retained at 20.00 us"));
  const absl::StatusOr<v1::Incumbent> served = store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  EXPECT_EQ(served->trial().variant().text(), first.trial().variant().text());
  EXPECT_EQ(served->timing().median_us(), 20);
  EXPECT_EQ(served->previous(), first.name()) << "the history keeps the former time";
  EXPECT_EQ(served->why(), done.tune().decision());
  EXPECT_EQ(done.tune().incumbent().name(), served->name());
  // A slower time of the same variant replaces the faster one too: it is newer, and nobody else is served for it.
  SetTimes({{"32/8", 30}});
  Tune();
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->timing().median_us(), 30);
}

TEST_F(TuneTest, AContendedPlayOffLeavesTheIncumbentsTime) {
  SetTimes({{"32/8", 40}});
  Start();
  const v1::Incumbent first = Tune().tune().incumbent();
  device_.ScriptPlayOff([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    for (auto& result : *response.mutable_results()) result.mutable_timing()->set_contended(true);
    return response;
  });
  Tune();
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->name(), first.name());
}

TEST_F(TuneTest, ARandomBudgetTriesSoManyTheIncumbentIncluded) {
  SetTimes({{"64/4", 40}});
  Start();
  v1::TuneRequest request = TuneRequest();
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  request.mutable_strategy()->set_max_trials(3);
  request.mutable_strategy()->set_seed(5);
  const v1::Operation done = Tune(request);
  EXPECT_THAT(Tries(), SizeIs(3));
  EXPECT_EQ(done.progress().trials_total(), 3);
  // The incumbent is among the draws of the same seed, and is none of these: reused, it counts once.
  for (const uint64_t seed : {5, 6, 7}) {
    request.mutable_strategy()->set_seed(seed);
    const v1::Operation again = Tune(request);
    EXPECT_EQ(again.progress().trials_total(), 3) << seed;
    EXPECT_GE(again.progress().trials_reused(), 1) << seed;
  }
}

TEST_F(TuneTest, NothingIsCompiledForADeviceThatAnotherProcessHolds) {
  device_.set_open(absl::FailedPreconditionError("device cuda:0 is in use by process 7"));
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_FAILED);
  EXPECT_THAT(done.error().message(), HasSubstr("in use by process 7"));
  EXPECT_EQ(pool_.compiles(), 0);
}

TEST_F(TuneTest, ARandomSearchTriesTheFamilysGuessFirst) {
  Start();
  for (const char* problem : {"b1.h1.q128.d64.f16", "b1.h1.q256.d64.f16", "b1.h1.q512.d64.f16"}) {
    v1::TuneRequest request = TuneRequest(problem);
    request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
    request.mutable_strategy()->set_max_trials(1);
    request.mutable_strategy()->set_seed(5);
    Tune(request);
    const auto guess = space::Guess(SearchFamily(), *ParseProblem(problem), FakeDevice());
    ASSERT_TRUE(guess.ok()) << guess.status();
    EXPECT_THAT(Tries(problem), ElementsAre(Pair(guess->ToText(), 1)));
  }
}

TEST_F(TuneTest, ASpillingVariantNeverReachesTheDevice) {
  pool_.Script([](const worker::v1::CompileRequest& request) {
    auto response = supervisor::FakeCompilePool::Plain(request);
    if (supervisor::FakeCompilePool::Has(request, "-DBLOCK=64")) response->mutable_entries(0)->set_spill_bytes(48);
    return response;
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Verdicts()[v1::VERDICT_INFEASIBLE], 2);
  EXPECT_EQ(device_.Count("trial"), 4);
  for (const v1::Trial& trial : store_.trials()) {
    if (trial.verdict() == v1::VERDICT_INFEASIBLE) {
      EXPECT_THAT(trial.detail(), HasSubstr("spills 48 bytes"));
    }
  }
}

TEST_F(TuneTest, AVariantWithSerializedWgmmaNeverReachesTheDevice) {
  constexpr char kLoss[] = "C7511: wgmma.mma_async instructions are serialized";
  pool_.Script([&](const worker::v1::CompileRequest& request) {
    auto response = supervisor::FakeCompilePool::Plain(request);
    if (supervisor::FakeCompilePool::Has(request, "-DBLOCK=64"))
      response->mutable_entries(0)->set_performance_loss(kLoss);
    return response;
  });
  Start();
  EXPECT_EQ(Tune().state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Verdicts()[v1::VERDICT_INFEASIBLE], 2);
  EXPECT_EQ(device_.Count("trial"), 4);
  for (const v1::Trial& trial : store_.trials()) {
    EXPECT_EQ(trial.detail(), trial.verdict() == v1::VERDICT_INFEASIBLE ? kLoss : "");
  }
}

TEST_F(TuneTest, CodeThatDoesNotCompileIsQuarantinedForOtherProblemsToo) {
  pool_.Script([](const worker::v1::CompileRequest& request) {
    auto response = supervisor::FakeCompilePool::Plain(request);
    if (supervisor::FakeCompilePool::Has(request, "-DBLOCK=16")) {
      response->set_verdict(v1::VERDICT_COMPILE_ERROR);
      response->set_log("kernel.cu(7): error");
      response->clear_artifact();
    }
    return response;
  });
  Start();
  Tune();
  EXPECT_EQ(Verdicts()[v1::VERDICT_COMPILE_ERROR], 2);
  EXPECT_EQ(Verdicts()[v1::VERDICT_OK], 4);
  const int compiles = pool_.compiles();
  Tune(TuneRequest("b1.h1.q256.d64.f16"));
  EXPECT_EQ(Verdicts()[v1::VERDICT_COMPILE_ERROR], 4);
  EXPECT_EQ(pool_.compiles(), compiles);
}

TEST_F(TuneTest, WhatACompilerSaysIsCutBetweenCharacters) {
  pool_.Script([](const worker::v1::CompileRequest& request) {
    auto response = supervisor::FakeCompilePool::Plain(request);
    if (supervisor::FakeCompilePool::Has(request, "-DBLOCK=16")) {
      response->set_verdict(v1::VERDICT_COMPILE_ERROR);
      response->set_log(std::string(3999, 'x') + "\xc3\xa9");
      response->clear_artifact();
    }
    return response;
  });
  Start();
  Tune();
  for (const v1::Trial& trial : store_.trials()) {
    if (trial.verdict() != v1::VERDICT_COMPILE_ERROR) continue;
    EXPECT_EQ(trial.detail(), std::string(3999, 'x'));
  }
  EXPECT_EQ(Verdicts()[v1::VERDICT_COMPILE_ERROR], 2);
}

TEST_F(TuneTest, IdenticalCodeLaunchedAlikeIsTimedOnce) {
  pool_.Script([](const worker::v1::CompileRequest& request) {
    auto response = supervisor::FakeCompilePool::Plain(request);
    if (!supervisor::FakeCompilePool::Has(request, "-DPLAIN=1") &&
        !supervisor::FakeCompilePool::Has(request, "-DPLAIN=0")) {
      response->set_artifact("the same code");
    }
    return response;
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED);
  // Grids 8 and 16, 4 and 8, 2 and 4: two of the six are launched as another one is.
  EXPECT_EQ(device_.Count("trial"), 4);
  int shared = 0;
  for (const v1::Trial& trial : store_.trials()) {
    if (trial.identical_to().empty()) continue;
    ++shared;
    const absl::StatusOr<v1::Trial> first = store_.GetTrial(trial.identical_to());
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(first->recipe().SerializeAsString(), trial.recipe().SerializeAsString());
    EXPECT_EQ(first->timing().median_us(), trial.timing().median_us());
  }
  EXPECT_EQ(shared, 2);
  EXPECT_THAT(Tries(), SizeIs(6));
}

TEST_F(TuneTest, BadVariantsGetTheirVerdictsAndTheOthersAreUnharmed) {
  device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    const std::string seen = Seen(request.candidate());
    if (seen == "16/8") response.set_verdict(v1::VERDICT_TIMEOUT);
    if (seen == "16/16") response.set_verdict(v1::VERDICT_CRASHED);
    if (seen == "32/4") response.set_verdict(v1::VERDICT_OUT_OF_BOUNDS);
    if (seen == "32/8") response.set_verdict(v1::VERDICT_WRONG_RESULT);
    if (response.verdict() != v1::VERDICT_OK) response.clear_timing();
    return response;
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(Verdicts(), ElementsAre(Pair(v1::VERDICT_OK, 2), Pair(v1::VERDICT_WRONG_RESULT, 1),
                                      Pair(v1::VERDICT_OUT_OF_BOUNDS, 1), Pair(v1::VERDICT_TIMEOUT, 1),
                                      Pair(v1::VERDICT_CRASHED, 1)));
  EXPECT_EQ(done.tune().winner().variant().parameters(0).value(), 64);
}

TEST_F(TuneTest, NothingRightIsNoWinner) {
  device_.ScriptTrial([](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response;
    response.set_verdict(v1::VERDICT_WRONG_RESULT);
    return response;
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_FALSE(done.tune().has_incumbent());
  EXPECT_FALSE(done.tune().has_winner());
  EXPECT_EQ(changes(), 0);
}

TEST_F(TuneTest, TrialsRaceAgainstTheFastestTimedAgainInThisJob) {
  std::vector<double> leaders;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    leaders.push_back(request.leader_us());
    return device_.Good(request.candidate());
  });
  device_.ScriptAnchor([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    response.mutable_timing()->set_high_us(101);
    return response;
  });
  Start();
  Tune();
  ASSERT_THAT(leaders, SizeIs(6));
  EXPECT_EQ(leaders.front(), 0);
  EXPECT_DOUBLE_EQ(leaders.back(), 101);
  EXPECT_EQ(device_.Count("anchor"), 1);
}

TEST_F(TuneTest, ATimeOfAnotherDayIsNoAnchorBeforeItIsTimedToday) {
  SetTimes({{"32/8", 40}});
  Start();
  Tune();
  for (const v1::Trial& trial : store_.trials()) {
    if (trial.variant().text() == "tiles:BLOCK=16,SPLITS=1") {
      v1::Trial contended = trial;  // and so it is tried again
      contended.clear_name();
      contended.mutable_timing()->set_contended(true);
      ASSERT_TRUE(store_.AppendTrial(contended, {}).ok());
      break;
    }
  }
  SetTimes({{"32/8", 50}});  // the device is slower today
  std::vector<double> leaders;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    leaders.push_back(request.leader_us());
    return device_.Good(request.candidate());
  });
  Tune();
  ASSERT_THAT(leaders, SizeIs(1));
  EXPECT_DOUBLE_EQ(leaders.front(), 50.25);
}

TEST_F(TuneTest, AnAnchorThatCannotBeTimedLetsNobodyBeGivenUp) {
  std::vector<double> leaders;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    leaders.push_back(request.leader_us());
    return device_.Good(request.candidate());
  });
  device_.ScriptAnchor([](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
    return absl::UnavailableError("the worker died");
  });
  Start();
  EXPECT_EQ(Tune().state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_THAT(leaders, testing::Each(0));
}

TEST_F(TuneTest, WhatIsSlowIsServedToNobodyHoweverShortItsTime) {
  SetTimes({{"32/8", 10}, {"64/4", 40}});
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    if (Seen(request.candidate()) == "32/8") response.set_verdict(v1::VERDICT_SLOW);
    return response;
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(done.progress().best().timing().median_us(), 40);
  EXPECT_EQ(Served(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_EQ(done.tune().incumbent().ties_size(), 0);
}

TEST_F(TuneTest, ATrialKnowsTheAnchorsClockAndWhetherAllOfItIsToBeChecked) {
  std::vector<worker::v1::TrialRequest> requests;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    requests.push_back(request);
    return device_.Good(request.candidate());
  });
  device_.ScriptAnchor([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    response.mutable_timing()->set_sm_clock_mhz(1755);
    return response;
  });
  Start();
  Tune();
  ASSERT_GT(requests.size(), 1);
  EXPECT_EQ(requests.back().leader_sm_clock_mhz(), 1755);
  EXPECT_FALSE(requests.back().check_all());
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  request.set_check_all(true);
  Tune(request);
  EXPECT_TRUE(requests.back().check_all());
}

TEST_F(TuneTest, ItsPhasesAndWhereItsTimeWentAreKept) {
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    response.set_check_ms(2);
    response.set_device_ms(0.25);
    return response;
  });
  Start();
  const v1::OperationProgress progress = Tune().progress();
  std::vector<v1::OperationProgress::Phase> phases;
  for (const v1::PhaseBegin& begin : progress.phases()) phases.push_back(begin.phase());
  EXPECT_THAT(phases, testing::ElementsAre(v1::OperationProgress::PHASE_ENUMERATE,
                                           v1::OperationProgress::PHASE_REFERENCE, v1::OperationProgress::PHASE_TRIALS,
                                           v1::OperationProgress::PHASE_PLAY_OFF, v1::OperationProgress::PHASE_VERIFY));
  EXPECT_GE(progress.cost().device_ms(), 6 * 0.25);
  EXPECT_GT(progress.cost().check_ms(), 0);
  EXPECT_GT(progress.cost().play_off_ms(), 0);
  EXPECT_GT(progress.device_busy(), 0);
  for (const v1::Trial& trial : store_.trials()) {
    EXPECT_EQ(trial.cost().check_ms(), 2);
    EXPECT_EQ(trial.cost().device_ms(), 0.25);
  }
}

TEST_F(TuneTest, ATrialThatToldNothingTookAsLongAsItsCall) {
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    absl::SleepFor(absl::Milliseconds(2));
    worker::v1::TrialResponse response;
    response.set_verdict(v1::VERDICT_TIMEOUT);
    return response;
  });
  Start();
  const v1::OperationProgress progress = Tune().progress();
  EXPECT_GE(progress.cost().check_ms(), 6 * 2);
  for (const v1::Trial& trial : store_.trials()) EXPECT_GE(trial.cost().check_ms(), 2);
}

class KnownTimeTest : public TuneTest {
 protected:
  // Tunes, the trial of `variant` as `change` makes it, and tunes again; how often that has been tried then.
  int TriedAgain(const std::string& seen, std::function<void(worker::v1::TrialResponse&)> change) {
    device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      worker::v1::TrialResponse response = device_.Good(request.candidate());
      if (Seen(request.candidate()) == seen) change(response);
      return response;
    });
    Start();
    Tune();
    const size_t before = store_.trials().size();
    Tune();
    return static_cast<int>(store_.trials().size() - before);
  }
};

TEST_F(KnownTimeTest, AGoodOneIsNotTakenAgain) {
  EXPECT_EQ(TriedAgain("32/8", [](worker::v1::TrialResponse&) {}), 0);
}

TEST_F(KnownTimeTest, AContendedOneIsTakenAgain) {
  EXPECT_EQ(
      TriedAgain("32/8", [](worker::v1::TrialResponse& response) { response.mutable_timing()->set_contended(true); }),
      1);
}

TEST_F(KnownTimeTest, OneThatWouldNotSettleIsTakenAgain) {
  EXPECT_EQ(TriedAgain("32/8",
                       [](worker::v1::TrialResponse& response) {
                         response.set_verdict(v1::VERDICT_UNSTABLE);
                         response.mutable_timing()->set_settled(false);
                       }),
            1);
}

TEST_F(KnownTimeTest, BitsThatDifferAreAVerdictForGood) {
  EXPECT_EQ(TriedAgain("32/8",
                       [](worker::v1::TrialResponse& response) {
                         response.set_verdict(v1::VERDICT_UNSTABLE);
                         response.clear_timing();
                       }),
            0);
}

TEST_F(KnownTimeTest, OneThatWasGivenUpHoldsWhileTheBestIsNotClearlySlower) {
  SetTimes({{"32/8", 99}});
  EXPECT_EQ(
      TriedAgain("32/8", [](worker::v1::TrialResponse& response) { response.mutable_timing()->set_given_up(true); }),
      0);  // the others take 100
}

TEST_F(KnownTimeTest, ASlowOneHoldsWhileTheBestIsNotClearlySlower) {
  SetTimes({{"32/8", 150}});
  const auto slow = [](worker::v1::TrialResponse& response) {
    response.set_verdict(v1::VERDICT_SLOW);
    response.mutable_timing()->set_given_up(true);
  };
  EXPECT_EQ(TriedAgain("32/8", slow), 0);  // the others take 100
}

TEST_F(KnownTimeTest, ASlowOneIsTakenAgainWhenTheBestIsClearlySlower) {
  SetTimes({{"32/8", 90}});
  const auto slow = [](worker::v1::TrialResponse& response) {
    response.set_verdict(v1::VERDICT_SLOW);
    response.mutable_timing()->set_given_up(true);
  };
  EXPECT_EQ(TriedAgain("32/8", slow), 1);
}

TEST_F(KnownTimeTest, OneThatWasGivenUpIsTakenAgainWhenTheBestIsClearlySlower) {
  SetTimes({{"32/8", 90}});
  EXPECT_EQ(
      TriedAgain("32/8", [](worker::v1::TrialResponse& response) { response.mutable_timing()->set_given_up(true); }),
      1);
}

TEST_F(TuneTest, WhoIsWrongOnFreshDataIsOutAndTheNextBestIsServed) {
  SetTimes({{"32/8", 40}, {"64/4", 42}});
  device_.ScriptPlayOff(
      [this](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
        EXPECT_EQ(request.fresh_seed() == 0, request.reload());
        worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
        for (int i = 0; i < request.candidates_size(); ++i) {
          if (Seen(request.candidates(i)) != "32/8") continue;
          response.mutable_results(i)->set_verdict(v1::VERDICT_WRONG_RESULT);
          response.mutable_results(i)->set_detail("o[3] is 7");
        }
        return response;
      });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.tune().winner().variant().text(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_EQ(Verdicts()[v1::VERDICT_WRONG_RESULT], 1);
  EXPECT_THAT(store_.trials().back().detail(), HasSubstr("fresh data: o[3] is 7"));
  EXPECT_EQ(store_.trials().back().variant().text(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(TuneTest, WhoTakesThePlayOffDownIsOut) {
  SetTimes({{"32/8", 40}, {"64/4", 42}});
  device_.ScriptPlayOff(
      [this](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
        worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
        for (int i = 0; i < request.candidates_size(); ++i) {
          if (Seen(request.candidates(i)) != "32/8") continue;
          if (request.candidates_size() > 1) return absl::UnavailableError("the worker died");
          response.mutable_results(i)->set_verdict(v1::VERDICT_CRASHED);
          response.mutable_results(i)->clear_timing();
        }
        return response;
      });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(done.tune().winner().variant().text(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_EQ(Verdicts()[v1::VERDICT_CRASHED], 1);
}

}  // namespace
}  // namespace attune::jobs
