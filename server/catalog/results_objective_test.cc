// Look-ups of the best by energy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/catalog/copy/results_of_copy.h"
#include "server/catalog/copy/served_copy.h"
#include "server/catalog/testing/results_fixture.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ResultsObjective : public ResultsTest {
 protected:
  // 32/8 is the fastest, 32/4 has the least product of energy and time, and 16/8 takes least energy.
  ResultsObjective() {
    SetTimes({{"32/8", 40}, {"32/4", 41}, {"16/8", 50}});
    device_.set_counts_energy(true);
    device_.ScriptJoules([](const worker::v1::Candidate& candidate) {
      const std::map<std::string, double> joules = {{"32/8", 0.012}, {"32/4", 0.011}, {"16/8", 0.010}};
      const auto it = joules.find(jobs::Seen(candidate));
      return it == joules.end() ? 0.1 : it->second;
    });
    Start();
  }
  void TuneBy(v1::Objective objective) {
    v1::TuneRequest request = TuneRequest();
    request.set_objective(objective);
    ASSERT_EQ(Tune(request).state(), v1::Operation::STATE_SUCCEEDED);
  }
  static v1::GetBestRequest AskBy(v1::Objective objective, const std::string& problem = kProblem) {
    v1::GetBestRequest request = Ask(problem);
    request.set_objective(objective);
    return request;
  }
};

TEST_F(ResultsObjective, WhatTakesLeastEnergyIsTheAnswerToWhoAsksForThat) {
  TuneBy(v1::OBJECTIVE_ENERGY);
  const auto results = Open(Today());
  v1::GetBestRequest request = AskBy(v1::OBJECTIVE_ENERGY);
  request.set_include_artifact(true);
  const auto best = results->GetBest(request);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(best->objective(), v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_EXACT);
  EXPECT_EQ(best->provenance_detail(),
            "10 mJ a run, least energy: 16.7 % less than the fastest, in 1.250 times its time");
  EXPECT_EQ(best->timing().median_us(), 50);
  EXPECT_EQ(best->timing().energy().joules(), 0.010);
  EXPECT_EQ(best->recipe().launches(0).grid().x(), 8);
  EXPECT_THAT(best->artifact(), HasSubstr("-DBLOCK=16"));
  EXPECT_EQ(best->artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_EQ(store_.GetTrial(best->trial())->variant().text(), "tiles:BLOCK=16,SPLITS=1");

  const auto product = results->GetBest(AskBy(v1::OBJECTIVE_EDP));
  EXPECT_EQ(product->variant().text(), "tiles:BLOCK=32,SPLITS=1");
  EXPECT_EQ(product->objective(), v1::OBJECTIVE_EDP);
  EXPECT_THAT(product->provenance_detail(), HasSubstr("451 nJ s a run, least energy-delay product"));
}

TEST_F(ResultsObjective, TheFastestIsTheAnswerToWhoAsksForNothingElse) {
  TuneBy(v1::OBJECTIVE_ENERGY);
  const auto results = Open(Today());
  const auto best = results->GetBest(Ask(kProblem));
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(best->objective(), v1::OBJECTIVE_UNSPECIFIED);
  EXPECT_EQ(best->provenance_detail(), "");
  EXPECT_EQ(results->GetBest(AskBy(v1::OBJECTIVE_TIME))->SerializeAsString(), best->SerializeAsString());
}

TEST_F(ResultsObjective, TheFastestSaysThatNobodyHasMeasured) {
  TuneBy(v1::OBJECTIVE_TIME);
  const auto results = Open(Today());
  const auto best = results->GetBest(AskBy(v1::OBJECTIVE_EDP));
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(best->objective(), v1::OBJECTIVE_UNSPECIFIED);
  EXPECT_EQ(best->provenance_detail(),
            "chosen by time: which has the least energy-delay product was never measured; tune with --objective=edp");
  const auto nearest = results->GetBest(AskBy(v1::OBJECTIVE_ENERGY, "b1.h1.q160.d64.f16"));
  EXPECT_EQ(nearest->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_THAT(nearest->provenance_detail(), HasSubstr("; chosen by time: which has the least energy was never"));
}

TEST_F(ResultsObjective, TheFastestSaysThatItTakesLeastItself) {
  device_.ScriptJoules([](const worker::v1::Candidate&) { return 0.012; });
  TuneBy(v1::OBJECTIVE_ENERGY);
  const auto best = Open(Today())->GetBest(AskBy(v1::OBJECTIVE_ENERGY));
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=32,SPLITS=2");
  EXPECT_EQ(best->provenance_detail(), "the fastest, and no other has less energy for certain");
}

TEST_F(ResultsObjective, AnAlternativeSaysThatAnotherIsTheFastestNow) {
  TuneBy(v1::OBJECTIVE_ENERGY);
  SetTimes({{"64/4", 30}, {"32/8", 40}, {"32/4", 41}, {"16/8", 50}});
  v1::TuneRequest request = TuneRequest();
  request.set_retry_known(true);
  Tune(request);
  const auto best = Open(Today())->GetBest(AskBy(v1::OBJECTIVE_ENERGY));
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_THAT(best->provenance_detail(), HasSubstr("10 mJ a run, least energy of those measured; the fastest has "
                                                   "changed since, and its energy is not known: tune with --obj"));
}

TEST_F(ResultsObjective, AnAlternativeIsStaleWithItsSources) {
  TuneBy(v1::OBJECTIVE_ENERGY);
  Host host = Today();
  host.families = Families(SearchFamily("source two"));
  const auto results = Open(host);
  const auto best = results->GetBest(AskBy(v1::OBJECTIVE_ENERGY));
  EXPECT_EQ(best->provenance(), v1::PROVENANCE_STALE);
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_THAT(best->provenance_detail(), HasSubstr("source of tiles changed; 10 mJ a run"));
  v1::GetBestRequest strict = AskBy(v1::OBJECTIVE_ENERGY);
  strict.add_acceptable(v1::PROVENANCE_EXACT);
  EXPECT_TRUE(absl::IsNotFound(results->GetBest(strict).status()));
}

TEST_F(ResultsObjective, AnAlternativeHoldsForNoOtherLength) {
  TuneBy(v1::OBJECTIVE_ENERGY);
  const auto results = Open(Today());
  v1::GetBestRequest request = AskBy(v1::OBJECTIVE_ENERGY);
  request.set_include_domains(true);
  EXPECT_THAT(results->GetBest(request)->domains(), IsEmpty());
  request.clear_objective();
  EXPECT_THAT(results->GetBest(request)->domains(), Not(IsEmpty()));
}

TEST_F(ResultsObjective, WhatIsPinnedIsTheAnswerToAll) {
  TuneBy(v1::OBJECTIVE_ENERGY);
  v1::EvaluateVariantRequest pin;
  *pin.mutable_problem() = ToProto(*ParseProblem(kProblem));
  pin.set_device_id("cuda:0");
  pin.set_policy(v1::POLICY_HOT);
  pin.mutable_variant()->set_text("tiles:BLOCK=64,SPLITS=1");
  pin.set_pin(true);
  AwaitStarted(tuner_->Evaluate(pin));
  const auto best = Open(Today())->GetBest(AskBy(v1::OBJECTIVE_ENERGY));
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=64,SPLITS=1");
  EXPECT_EQ(best->provenance_detail(), "it is pinned, which holds for every objective");
}

TEST_F(ResultsObjective, ACopyOfWhatIsServedHasTheAlternatives) {
  TuneBy(v1::OBJECTIVE_ENERGY);
  const auto copy = TakeCopy(store_, "db", absl::FromUnixSeconds(1'764'255'485));
  ASSERT_TRUE(copy.ok());
  const absl::StatusOr<std::string> file = CopyToFile(*copy);
  ASSERT_TRUE(file.ok());
  const auto read = CopyFromFile(*file, "db");
  ASSERT_TRUE(read.ok());
  store::FakeStore away;
  const Host& host = hosts_.emplace_back(Today());
  const auto best = LoadFromCopy(*read, away, host, nullptr)->GetBest(AskBy(v1::OBJECTIVE_ENERGY));
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->variant().text(), "tiles:BLOCK=16,SPLITS=1");
  EXPECT_EQ(best->recipe().launches(0).grid().x(), 8);
}

}  // namespace
}  // namespace attune::catalog
