// Contests of tunings with an objective: what is kept beside the fastest, and until when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/jobs/testing/tuner_fixture.h"
#include "server/promotion/contest.h"

namespace attune::promotion {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ObjectiveTest : public jobs::TunerTest {
 protected:
  // 32/8 is the fastest, 32/4 has the least product (0.451 uJ s against 0.48), and 16/8 takes least energy.
  ObjectiveTest() {
    SetTimes({{"32/8", 40}, {"32/4", 41}, {"16/8", 50}});
    SetJoules({{"32/8", 0.012}, {"32/4", 0.011}, {"16/8", 0.010}});
    device_.set_counts_energy(true);
  }
  // 0.1 J for all others.
  void SetJoules(std::map<std::string, double> joules) {
    device_.ScriptJoules([joules = std::move(joules)](const worker::v1::Candidate& candidate) {
      const auto it = joules.find(jobs::Seen(candidate));
      return it == joules.end() ? 0.1 : it->second;
    });
  }
  v1::TuneResult TuneBy(v1::Objective objective, const std::string& request_id = "") {
    v1::TuneRequest request = TuneRequest();
    request.set_objective(objective);
    request.set_request_id(request_id);
    return Tune(request).tune();
  }
  v1::Incumbent Kept() { return *store_.GetIncumbent(kProblem, "an L4", v1::POLICY_HOT); }
  // Of the alternative; "itself" where that is the incumbent, "none" where there is none.
  std::string KeptFor(v1::Objective objective) {
    const v1::Incumbent kept = Kept();
    for (const v1::Alternative& one : kept.alternatives()) {
      if (one.objective() == objective) return one.has_trial() ? one.trial().variant().text() : "itself";
    }
    return "none";
  }
  // In play-offs from now on one variant is wrong and, where `contended`, another process is on the device.
  void Fail(const std::string& seen, bool contended = false, v1::Verdict verdict = v1::VERDICT_WRONG_RESULT) {
    device_.ScriptPlayOff(
        [this, seen, contended,
         verdict](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
          worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
          for (int i = 0; i < request.candidates_size(); ++i) {
            response.mutable_results(i)->mutable_timing()->set_contended(contended);
            if (jobs::Seen(request.candidates(i)) == seen) response.mutable_results(i)->set_verdict(verdict);
          }
          return response;
        });
  }
};

TEST_F(ObjectiveTest, TheFastestIsServedAndTheBestByEnergyAreKeptBesideIt) {
  Start();
  const v1::TuneResult result = TuneBy(v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(Served(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "tiles:BLOCK=32,SPLITS=1");
  const v1::Incumbent kept = Kept();
  ASSERT_THAT(kept.alternatives(), SizeIs(2));
  const v1::Trial& least = kept.alternatives(0).trial();
  EXPECT_EQ(least.timing().median_us(), 50);
  EXPECT_EQ(least.timing().cycles(), 3);
  EXPECT_EQ(least.timing().energy().joules(), 0.010);
  EXPECT_FALSE(least.artifact_sha256().empty());
  EXPECT_EQ(least.recipe().launches(0).grid().x(), 8);
  EXPECT_THAT(result.incumbent().alternatives(), SizeIs(2));
  EXPECT_THAT(result.decision(), HasSubstr("; tiles:BLOCK=16,SPLITS=1 has the least energy, 10 mJ a run, 16.7 % less"));
  EXPECT_THAT(result.decision(), HasSubstr("; tiles:BLOCK=32,SPLITS=1 has the least energy-delay product, 451 nJ s"));
}

TEST_F(ObjectiveTest, AFasterFieldAloneIsMeasuredWithoutOne) {
  Start();
  v1::TuneRequest request = TuneRequest();
  request.set_energy(true);
  EXPECT_THAT(Tune(request).tune().play_off(), SizeIs(2)) << "50 us lie too far behind 40";
  EXPECT_THAT(Kept().alternatives(), IsEmpty());
  EXPECT_THAT(TuneBy(v1::OBJECTIVE_EDP).play_off(), SizeIs(3));
  EXPECT_THAT(Kept().alternatives(), SizeIs(2));
}

TEST_F(ObjectiveTest, EightPlayOffOfThoseThatAreNear) {
  SetTimes({});
  SetJoules({});
  Start(catalog::Families(catalog::SearchFamily("source one", "8, 16, 32, 64, 128")));
  EXPECT_THAT(TuneBy(v1::OBJECTIVE_TIME).play_off(), SizeIs(6));
  EXPECT_THAT(TuneBy(v1::OBJECTIVE_ENERGY).play_off(), SizeIs(9)) << "eight and the incumbent";
}

TEST_F(ObjectiveTest, TheFastestIsItsOwnWhereNothingTakesLessForCertain) {
  SetJoules({{"32/8", 0.012}, {"32/4", 0.0119}, {"16/8", 0.012}});
  Start();
  const v1::TuneResult result = TuneBy(v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "itself");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "itself");
  EXPECT_THAT(result.decision(), HasSubstr("; no other has less energy for certain"));
}

TEST_F(ObjectiveTest, AnAlternativeIsRunManyTimesAndIsOutWhereItFails) {
  std::vector<std::string> seen;
  device_.ScriptManyRuns([&](const worker::v1::PlayOffRequest& request) -> absl::StatusOr<worker::v1::PlayOffResponse> {
    worker::v1::PlayOffResponse response = device_.GoodPlayOff(request);
    std::string all;
    for (int i = 0; i < request.candidates_size(); ++i) {
      absl::StrAppend(&all, all.empty() ? "" : " ", jobs::Seen(request.candidates(i)));
      if (jobs::Seen(request.candidates(i)) != "16/8") continue;
      response.mutable_results(i)->set_verdict(v1::VERDICT_WRONG_RESULT);
      response.mutable_results(i)->set_detail("run 61: o[3] is 7");
    }
    seen.push_back(all);
    return response;
  });
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(seen, (std::vector<std::string>{"32/8", "16/8 32/4", "32/8", "32/4"}));
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=32,SPLITS=1");
  EXPECT_THAT(store_.trials().back().detail(), HasSubstr("fresh data: run 61: o[3] is 7"));
}

TEST_F(ObjectiveTest, AlternativesStayWhileTheSameIsServed) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  TuneBy(v1::OBJECTIVE_TIME, "later");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "tiles:BLOCK=32,SPLITS=1");
}

TEST_F(ObjectiveTest, OneThatWasItsOwnStaysSoWhileItIsServed) {
  SetJoules({});
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  TuneBy(v1::OBJECTIVE_TIME, "later");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "itself");
}

TEST_F(ObjectiveTest, ThoseOfAnotherVariantStayBesideAFasterThatNobodyMeasured) {
  SetTimes({{"32/8", 40}, {"16/8", 50}});
  SetJoules({{"32/8", 0.012}, {"16/8", 0.010}});
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "itself");
  SetTimes({{"64/4", 30}, {"32/8", 40}, {"16/8", 50}});
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  Tune(request);
  EXPECT_EQ(Served(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_FALSE(Kept().timing().has_energy());
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "none") << "it was the former incumbent itself";
}

TEST_F(ObjectiveTest, AnAlternativeThatBecomesTheFastestBringsItsEnergy) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  SetTimes({{"16/8", 30}, {"32/8", 40}, {"32/4", 41}});
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  Tune(request);
  EXPECT_EQ(Served(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(Kept().timing().energy().joules(), 0.010);
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "itself") << "it took least, and is the fastest too";
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "itself") << "300 nJ s, against 451 of what had the least before";
}

TEST_F(ObjectiveTest, AnAlternativeDoesNotStayBesideAFasterThatIsMeasuredToBeAsGood) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  SetTimes({{"64/4", 30}, {"32/8", 40}, {"32/4", 41}, {"16/8", 50}});
  SetJoules({{"64/4", 0.0105}, {"32/8", 0.012}, {"32/4", 0.011}, {"16/8", 0.010}});
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  request.set_energy(true);
  Tune(request);
  EXPECT_EQ(Served(), "tiles:BLOCK=64,SPLITS=2");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1") << "10 mJ are less than 10.5";
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "itself") << "315 nJ s, against 451";
}

TEST_F(ObjectiveTest, AlternativesGoWithTheSourcesThatTheyWereBuiltFrom) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  Start(catalog::Families(catalog::SearchFamily("source two")));
  TuneBy(v1::OBJECTIVE_TIME);
  EXPECT_EQ(Served(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(Kept().trial().dependencies().source_hash(), "source two");
  EXPECT_THAT(Kept().alternatives(), IsEmpty());
}

TEST_F(ObjectiveTest, AFormerAlternativePlaysOffHoweverManyAreFaster) {
  SetTimes({{"16/8", 149}});
  SetJoules({{"16/8", 0.01}});
  Start(catalog::Families(catalog::SearchFamily("source one", "16")));
  TuneBy(v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
  // Ten of 100 us come to it.
  Start(catalog::Families(catalog::SearchFamily("source one", "8, 16, 32, 64, 96, 128")));
  TuneBy(v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
}

TEST_F(ObjectiveTest, AlternativesStayWhereTheFastestsEnergyIsNotKnown) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  SetJoules({{"32/8", 0}, {"32/4", 0.011}, {"16/8", 0.013}});
  const v1::TuneResult result = TuneBy(v1::OBJECTIVE_ENERGY, "later");
  EXPECT_THAT(result.decision(), HasSubstr("the energy of tiles:BLOCK=32,SPLITS=2 is not known"));
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
}

TEST_F(ObjectiveTest, AnAlternativeThatALaterPlayOffFindsWrongGoes) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  Fail("32/4");
  TuneBy(v1::OBJECTIVE_TIME, "later");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "none");
}

TEST_F(ObjectiveTest, AnAlternativeWhoseTimesDoNotSettleStays) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  Fail("32/4", /*contended=*/false, v1::VERDICT_UNSTABLE);
  const v1::TuneResult result = TuneBy(v1::OBJECTIVE_TIME, "later");
  EXPECT_THAT(result.play_off(), SizeIs(1)) << "it is out of the play-off";
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "tiles:BLOCK=32,SPLITS=1");
}

TEST_F(ObjectiveTest, AnAlternativeThatIsWrongGoesEvenWhereTheTimeOfTheIncumbentIsNotKept) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  const v1::Incumbent before = Kept();
  Fail("32/4", /*contended=*/true);
  const v1::TuneResult result = TuneBy(v1::OBJECTIVE_TIME, "later");
  EXPECT_FALSE(result.promoted());
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_EDP), "none");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(Kept().trial().name(), before.trial().name());
  EXPECT_EQ(Kept().timing().SerializeAsString(), before.timing().SerializeAsString());
  EXPECT_EQ(Kept().promote_time().SerializeAsString(), before.promote_time().SerializeAsString());
  EXPECT_EQ(Kept().why(), "the same, without tiles:BLOCK=32,SPLITS=1, which is wrong");
}

TEST_F(ObjectiveTest, AContendedPlayOffKeepsNothingAndSaysSo) {
  Start();
  TuneBy(v1::OBJECTIVE_TIME);
  Fail("nobody", /*contended=*/true);
  const v1::TuneResult result = TuneBy(v1::OBJECTIVE_ENERGY);
  EXPECT_THAT(Kept().alternatives(), IsEmpty());
  EXPECT_THAT(result.decision(), HasSubstr("; which has the least energy is not known"));
}

TEST_F(ObjectiveTest, WhatIsPinnedHasNoAlternatives) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  v1::EvaluateVariantRequest pin;
  *pin.mutable_problem() = ToProto(*ParseProblem(kProblem));
  pin.set_device_id("cuda:0");
  pin.set_policy(v1::POLICY_HOT);
  pin.mutable_variant()->set_text("tiles:BLOCK=64,SPLITS=1");
  pin.mutable_variant()->set_family("tiles");
  pin.set_pin(true);
  AwaitStarted(tuner_->Evaluate(pin));
  EXPECT_TRUE(Kept().pinned());
  EXPECT_THAT(Kept().alternatives(), IsEmpty());
  TuneBy(v1::OBJECTIVE_ENERGY, "later");
  EXPECT_THAT(Kept().alternatives(), IsEmpty());
}

TEST_F(ObjectiveTest, ARollBackServesTheAlternativesOfThatTime) {
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  SetTimes({{"64/4", 30}, {"32/8", 40}, {"32/4", 41}, {"16/8", 50}});
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  request.set_objective(v1::OBJECTIVE_ENERGY);
  SetJoules({});
  Tune(request);
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "itself");
  ASSERT_TRUE(results_->RollBack({kProblem, "an L4", v1::POLICY_HOT}, "", "").ok());
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
}

TEST_F(ObjectiveTest, ACardThatIsAskedForThemServesItsOwnTimeBesideItsAlternatives) {
  v1::Device other = catalog::FakeDevice();
  other.set_id("cuda:1");
  other.set_uuid("GPU-1");
  other.set_counts_energy(true);
  supervisor::FakeDeviceWorker sister(other);
  sister.ScriptUs([](const worker::v1::Candidate& candidate) { return jobs::Seen(candidate) == "32/8" ? 42 : 43; });
  sister.ScriptJoules(
      [](const worker::v1::Candidate& candidate) { return jobs::Seen(candidate) == "64/2" ? 0.01 : 0.02; });
  others_ = {&sister};
  Start();
  TuneBy(v1::OBJECTIVE_ENERGY);
  v1::TuneRequest request = TuneRequest();
  request.set_device_id("cuda:1");
  Tune(request);
  EXPECT_EQ(Kept().device_id(), "cuda:0");
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=16,SPLITS=1");
  request.set_objective(v1::OBJECTIVE_ENERGY);
  EXPECT_FALSE(Tune(request).tune().promoted());
  EXPECT_EQ(Kept().device_id(), "cuda:1");
  EXPECT_EQ(Kept().timing().median_us(), 42);
  EXPECT_EQ(KeptFor(v1::OBJECTIVE_ENERGY), "tiles:BLOCK=64,SPLITS=1");
  tuner_ = nullptr;
  tuning_.reset();
}

TEST_F(ObjectiveTest, TimeIsWhatIsAskedForWithoutOne) {
  Start();
  pool_.Hold();
  v1::TuneRequest request = TuneRequest();
  const std::string plain = tuner_->Tune(request)->name();
  request.set_objective(v1::OBJECTIVE_TIME);
  EXPECT_EQ(tuner_->Tune(request)->name(), plain);
  request.set_objective(v1::OBJECTIVE_ENERGY);
  const std::string by_energy = tuner_->Tune(request)->name();
  EXPECT_NE(by_energy, plain);
  request.set_energy(true);
  EXPECT_EQ(tuner_->Tune(request)->name(), by_energy);
  pool_.Go();
  EXPECT_EQ(Await(plain).state(), v1::Operation::STATE_SUCCEEDED);
  EXPECT_EQ(Await(by_energy).state(), v1::Operation::STATE_SUCCEEDED);
}

TEST_F(ObjectiveTest, IsRefusedWhereNothingCountsEnergy) {
  device_.set_counts_energy(false);
  Start();
  v1::TuneRequest request = TuneRequest();
  request.set_objective(v1::OBJECTIVE_EDP);
  const absl::Status refused = tuner_->Tune(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("objective is OBJECTIVE_EDP, and cuda:0 (NVIDIA L4) does not count its energy; allowed: "
                        "OBJECTIVE_TIME, or a device"));
  EXPECT_TRUE(tuner_->Tune(TuneRequest()).ok());
}

}  // namespace
}  // namespace attune::promotion
