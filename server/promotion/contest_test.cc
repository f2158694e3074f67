// Contests among several jobs on one problem: who plays off, and against whom.
#include "server/promotion/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/jobs/testing/tuner_fixture.h"

namespace attune::promotion {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ContestTest : public jobs::TunerTest {
 protected:
  static v1::TuneRequest OfOneTrial() {
    v1::TuneRequest request = TuneRequest();
    request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
    request.mutable_strategy()->set_max_trials(1);
    return request;
  }
  v1::Trial TrialOf(const std::string& variant) {
    for (const v1::Trial& trial : store_.trials()) {
      if (trial.variant().text() == variant && trial.verdict() == v1::VERDICT_OK) return trial;
    }
    ADD_FAILURE() << variant << " has no good trial";
    return {};
  }
  // As another job would.
  void Promote(const std::string& variant) {
    const absl::StatusOr<v1::Incumbent> before = store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
    v1::Incumbent incumbent;
    incumbent.set_problem_text(kProblem);
    incumbent.set_device_id("cuda:0");
    incumbent.set_policy(v1::POLICY_HOT);
    *incumbent.mutable_trial() = TrialOf(variant);
    EXPECT_TRUE(store_.Promote(incumbent, before.ok() ? before->name() : "", {}).ok());
  }
  // Has `then` run in the middle of the first so many play-offs.
  void DuringPlayOffs(int count, std::function<void()> then) {
    device_.ScriptPlayOff([this, count, then = std::move(then)](const worker::v1::PlayOffRequest& request) mutable
                          -> absl::StatusOr<worker::v1::PlayOffResponse> {
      if (!request.reload() && count-- > 0) then();
      return device_.GoodPlayOff(request);
    });
  }
};

TEST_F(ContestTest, AnIncumbentPromotedWhileTheJobRanTakesPart) {
  SetTimes({{"32/8", 40}});
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    gone.wait();
    return device_.Good(request.candidate());
  });
  Start();
  const v1::Operation all = *tuner_->Tune(TuneRequest());
  AwaitPhase(all.name(), v1::OperationProgress::PHASE_TRIALS);
  const v1::Operation one = *tuner_->Tune(OfOneTrial());
  AwaitPhase(one.name(), v1::OperationProgress::PHASE_REFERENCE);
  go.set_value();
  EXPECT_EQ(Await(all.name()).tune().winner().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  const v1::Operation done = Await(one.name());
  EXPECT_FALSE(done.tune().promoted()) << done.tune().decision();
  EXPECT_EQ(done.tune().incumbent().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(Served(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(ContestTest, AnIncumbentRemembersWhomItsPlayOffCouldNotTellApartFromIt) {
  SetTimes({{"32/8", 40}, {"32/4", 40.1}, {"16/8", 40.15}});
  Start();
  const v1::Operation done = Tune();
  const v1::Incumbent served = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  EXPECT_EQ(served.trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  std::set<std::string> ties;
  for (const v1::Variant& tie : served.ties()) ties.insert(tie.text());
  EXPECT_EQ(ties, (std::set<std::string>{"tiles:BLOCK=32,SPLITS=1", "tiles:BLOCK=16,SPLITS=1"}));
  EXPECT_THAT(done.tune().decision(), HasSubstr("statistically tied with 2 others"));
}

TEST_F(ContestTest, ATieIsRunAsOftenAsTheWinnerAndIsOutWhereItFails) {
  SetTimes({{"32/8", 40}, {"32/4", 40.1}, {"16/8", 40.15}});
  std::vector<int> numbers;
  device_.ScriptManyRuns([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    numbers.push_back(request.candidates_size());
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    for (int i = 0; i < request.candidates_size(); ++i) {
      if (jobs::Seen(request.candidates(i)) != "32/4") continue;
      response.mutable_results(i)->set_verdict(v1::VERDICT_WRONG_RESULT);
      response.mutable_results(i)->set_detail("run 61: o[3] is 7");
    }
    return response;
  });
  Start();
  const v1::Operation done = Tune();
  EXPECT_EQ(numbers, (std::vector<int>{3, 2}));
  const v1::Incumbent served = *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT);
  EXPECT_EQ(served.trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  ASSERT_THAT(served.ties(), SizeIs(1));
  EXPECT_EQ(served.ties(0).text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_THAT(store_.trials().back().detail(), HasSubstr("fresh data: run 61: o[3] is 7"));
}

TEST_F(ContestTest, EnergyIsMeasuredWhereItIsAskedForAndStaysWithWhatIsServed) {
  SetTimes({{"32/8", 40}, {"32/4", 40.1}});
  device_.set_counts_energy(true);
  device_.ScriptJoules(
      [](const worker::v1::Candidate& candidate) { return jobs::Seen(candidate) == "32/4" ? 0.011 : 0.012; });
  Start();
  v1::TuneRequest request = TuneRequest();
  EXPECT_FALSE(Await(tuner_->Tune(request)->name()).tune().winner().timing().has_energy());
  EXPECT_EQ(device_.Count("energy "), 0);

  request.set_energy(true);
  const v1::TuneResult measured = Await(tuner_->Tune(request)->name()).tune();
  EXPECT_EQ(device_.Count("energy "), measured.play_off_size());
  EXPECT_EQ(measured.winner().variant().text(), "tiles:BLOCK=32,SPLITS=2");  // the fastest, not the thriftiest
  EXPECT_EQ(measured.winner().timing().energy().joules(), 0.012);
  for (const v1::Trial& trial : measured.play_off()) {
    const bool thrifty = trial.variant().text() == "tiles:BLOCK=32,SPLITS=1";
    EXPECT_EQ(trial.timing().energy().joules(), thrifty ? 0.011 : 0.012) << trial.variant().text();
  }
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->timing().energy().joules(), 0.012);

  // Another tuning times it anew and asks for none.
  request.set_energy(false);
  request.set_request_id("later");
  Await(tuner_->Tune(request)->name());
  EXPECT_EQ(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->timing().energy().joules(), 0.012);
}

TEST_F(ContestTest, AnEnergyThatIsNotKnownIsSaidAndServesAllTheSame) {
  SetTimes({{"32/8", 40}});
  device_.set_counts_energy(true);
  Start();
  v1::TuneRequest request = TuneRequest();
  request.set_energy(true);
  const v1::TuneResult result = Await(tuner_->Tune(request)->name()).tune();
  EXPECT_TRUE(result.promoted());
  EXPECT_THAT(result.decision(), HasSubstr("the energy of tiles:BLOCK=32,SPLITS=2 is not known: this device does not "
                                           "count its energy"));
}

TEST_F(ContestTest, WhoDiesWhileItsEnergyIsMeasuredIsOut) {
  SetTimes({{"32/8", 40}, {"32/4", 40.1}});
  device_.set_counts_energy(true);
  device_.ScriptJoules(
      [](const worker::v1::Candidate& candidate) { return jobs::Seen(candidate) == "32/8" ? -1 : 0.012; });
  Start();
  v1::TuneRequest request = TuneRequest();
  request.set_energy(true);
  const v1::TuneResult result = Await(tuner_->Tune(request)->name()).tune();
  EXPECT_EQ(result.winner().variant().text(), "tiles:BLOCK=32,SPLITS=1");
  const v1::Trial out = store_.trials().back();
  EXPECT_EQ(out.verdict(), v1::VERDICT_CRASHED);
  EXPECT_THAT(out.detail(), HasSubstr("while its energy was measured: died"));
}

TEST_F(ContestTest, EnergyIsRefusedWhereNothingCountsIt) {
  Start();
  v1::TuneRequest request = TuneRequest();
  request.set_energy(true);
  const absl::Status refused = tuner_->Tune(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("does not count its energy; allowed: false, or a device"));
}

TEST_F(ContestTest, TheServedTimeHasItsRoundsAndCycles) {
  SetTimes({{"32/8", 40}});
  Start();
  Tune();
  const v1::Timing served = store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->timing();
  EXPECT_EQ(served.cycles(), 3);
  EXPECT_EQ(served.median_us(), 40);
  EXPECT_EQ(device_.Count("play-off"), 1);
  EXPECT_EQ(device_.Count("again"), 2);
}

TEST_F(ContestTest, TheServedTimesQuantilesAreOfAllItsCyclesRoundsThatCount) {
  SetTimes({{"32/8", 40}});
  Start();
  int cycle = 0;
  device_.ScriptPlayOff([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    if (response.results(0).rounds_us_size() == 0) return response;  // many runs
    auto& us = *response.mutable_results(0)->mutable_rounds_us();
    for (double& each : us) each = 40 + 0.01 * cycle;
    us[0] = 0;  // does not count
    ++cycle;
    return response;
  });
  Tune();
  const v1::Timing served = store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->timing();
  ASSERT_EQ(served.cycles(), 3);
  ASSERT_EQ(served.quantiles_us_size(), 33);
  EXPECT_FLOAT_EQ(served.quantiles_us(0), 40);
  EXPECT_FLOAT_EQ(served.quantiles_us(16), 40.01);
  EXPECT_FLOAT_EQ(served.quantiles_us(32), 40.02);
}

TEST_F(ContestTest, AnUnclearPlayOffHasTenCyclesAndPromotesNobody) {
  SetTimes({{"32/8", 40}, {"32/4", 41}});
  Start();
  Tune();
  int cycle = 0;
  device_.ScriptPlayOff([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    ++cycle;
    for (int i = 0; i < request.candidates_size(); ++i) {
      const bool incumbent = jobs::Seen(request.candidates(i)) == "32/8";
      for (double& us : *response.mutable_results(i)->mutable_rounds_us()) us = incumbent ? 40 : 38 + 4 * (cycle % 2);
    }
    return response;
  });
  const v1::Operation done = Tune();
  EXPECT_EQ(cycle, 10);
  EXPECT_FALSE(done.tune().promoted());
  EXPECT_EQ(Served(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_THAT(done.tune().decision(), HasSubstr("it is unclear"));
  EXPECT_THAT(store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT)->ties(), SizeIs(0));
}

TEST_F(ContestTest, TheTimesOfTheIncumbentAndOfTheWinnerStayInTheHistory) {
  SetTimes({{"32/8", 40}});
  Start();
  Tune();
  Promote("tiles:BLOCK=16,SPLITS=1");
  const auto before = store_.ListRetimings({}, 100, "")->items.size();
  Tune();
  std::map<std::string, double> times;
  const auto page = store_.ListRetimings({}, 100, "");
  for (size_t i = 0; i + before < page->items.size(); ++i) {
    times[page->items[i].variant()] = page->items[i].timing().median_us();
  }
  EXPECT_EQ(times, (std::map<std::string, double>{{"tiles:BLOCK=16,SPLITS=1", 100}, {"tiles:BLOCK=32,SPLITS=2", 40}}));
}

TEST_F(ContestTest, WhatAnotherJobMeasuredAndDidNotServeTakesPart) {
  SetTimes({{"32/8", 40}});
  std::atomic<int> trials = 0;
  std::string measuring;
  device_.ScriptTrial([&](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    if (++trials == 5) {
      EXPECT_TRUE(tuner_->Cancel(measuring).ok());
    }
    return device_.Good(request.candidate());
  });
  Start();
  pool_.Hold();  // until the name is known
  measuring = tuner_->Tune(TuneRequest())->name();
  pool_.Go();
  EXPECT_EQ(Await(measuring).state(), v1::Operation::STATE_CANCELLED);
  const v1::Operation done = Tune(OfOneTrial());
  EXPECT_EQ(done.tune().winner().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(Served(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(ContestTest, AGoodTrialOfAVariantThatIsNoLongerOfferedIsLeftOut) {
  Start();
  Tune();
  v1::Trial gone = TrialOf("tiles:BLOCK=16,SPLITS=1");
  gone.clear_name();
  gone.mutable_variant()->set_text("tiles:BLOCK=24,SPLITS=1");
  gone.mutable_timing()->set_median_us(1);
  ASSERT_TRUE(store_.AppendTrial(gone, {}).ok());
  const v1::Operation done = Tune(OfOneTrial());
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
}

TEST_F(ContestTest, AnIncumbentNeverMeasuredWithTodaysSourcesIsMeasuredAndCompared) {
  SetTimes({{"64/4", 40}});
  Start();
  Tune();
  Promote("tiles:BLOCK=16,SPLITS=1");
  Start(catalog::Families(catalog::SearchFamily("source two")));
  // While the job plays off, a roll-back serves what it has not tried.
  DuringPlayOffs(1, [this] { EXPECT_TRUE(store_.RollBack(kProblem, "an L4", v1::POLICY_HOT, "", "").ok()); });
  const v1::Operation done = Tune(OfOneTrial());
  ASSERT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(Served(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_EQ(done.tune().incumbent().trial().dependencies().source_hash(), "source two");
  EXPECT_THAT(done.tune().decision(), HasSubstr("confirmed under today's dependencies"));
}

TEST_F(ContestTest, AnIncumbentThatFailsTodayGivesWay) {
  SetTimes({{"64/4", 40}});
  Start();
  Tune();
  device_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
    worker::v1::TrialResponse response = device_.Good(request.candidate());
    if (jobs::Seen(request.candidate()) == "64/4") response.set_verdict(v1::VERDICT_WRONG_RESULT);
    return response;
  });
  Start(catalog::Families(catalog::SearchFamily("source two")));
  const v1::Operation done = Tune();
  EXPECT_TRUE(done.tune().promoted());
  EXPECT_NE(Served(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_THAT(done.tune().decision(), HasSubstr("failed with today's sources and driver: WRONG_RESULT"));
}

TEST_F(ContestTest, APromotionInBetweenIsPlayedOffAgainHoweverOften) {
  SetTimes({{"32/8", 40}});
  Start();
  bool other = false;
  DuringPlayOffs(5, [&] {
    other = !other;
    Promote(other ? "tiles:BLOCK=16,SPLITS=1" : "tiles:BLOCK=64,SPLITS=1");
  });
  const v1::Operation done = Tune();
  ASSERT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_EQ(device_.Count("play-off"), 6);
  EXPECT_TRUE(done.tune().promoted());
  EXPECT_EQ(Served(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_THAT(done.tune().decision(), HasSubstr("times as fast as the incumbent's"));
}

TEST_F(ContestTest, WhatIsKeptIsWhatIsServedThen) {
  SetTimes({{"32/8", 40}});
  Start();
  Tune();
  DuringPlayOffs(1, [this] { Promote("tiles:BLOCK=16,SPLITS=1"); });
  const v1::Operation done = Tune();
  EXPECT_TRUE(done.tune().promoted()) << done.tune().decision();
  EXPECT_EQ(done.tune().incumbent().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(Served(), "tiles:BLOCK=32,SPLITS=2");
}

}  // namespace
}  // namespace attune::promotion
