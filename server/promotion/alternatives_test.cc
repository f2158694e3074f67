#include "server/promotion/alternatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/attune/objective.h"
#include "proto/attune/problem.h"
#include "server/catalog/testing/fake_host.h"
#include "server/space/space.h"

namespace attune::promotion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Timed at `us`; its energy in spans of 1 % about `joules`.
v1::Trial Measured(double us, double joules) {
  v1::Trial trial;
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_variant()->set_text("tiles:BLOCK=16,SPLITS=1");
  v1::Timing& timing = *trial.mutable_timing();
  timing.set_low_us(us);
  timing.set_median_us(us);
  timing.set_high_us(us);
  timing.mutable_energy()->set_low_joules(0.99 * joules);
  timing.mutable_energy()->set_joules(joules);
  timing.mutable_energy()->set_high_joules(1.01 * joules);
  return trial;
}

TEST(Alternatives, AreTheOneOfLeastEnergyAndTheOneOfTheLeastProduct) {
  const std::vector<v1::Trial> contestants = {Measured(40, 0.012), Measured(41, 0.011), Measured(50, 0.010)};
  const std::vector<BestBy> chosen = ChooseAlternatives(contestants, 0);
  ASSERT_THAT(chosen, SizeIs(2));
  EXPECT_EQ(chosen[0].objective, v1::OBJECTIVE_ENERGY);
  EXPECT_EQ(chosen[0].contestant, 2u);
  EXPECT_EQ(WordsOf(chosen[0], contestants, 0),
            "; tiles:BLOCK=16,SPLITS=1 has the least energy, 10 mJ a run, 16.7 % less than the fastest");
  EXPECT_EQ(chosen[1].objective, v1::OBJECTIVE_EDP);
  EXPECT_EQ(chosen[1].contestant, 1u);
  EXPECT_EQ(
      WordsOf(chosen[1], contestants, 0),
      "; tiles:BLOCK=16,SPLITS=1 has the least energy-delay product, 451 nJ s a run, 6.0 % less than the fastest");
}

TEST(Alternatives, AreNoneWhereSpansOverlapOrAnotherProcessWasThere) {
  std::vector<v1::Trial> contestants = {Measured(40, 0.012), Measured(40, 0.0119)};
  std::vector<BestBy> chosen = ChooseAlternatives(contestants, 0);
  ASSERT_THAT(chosen, SizeIs(2));
  EXPECT_FALSE(chosen[0].contestant.has_value());
  EXPECT_FALSE(chosen[1].contestant.has_value());
  EXPECT_EQ(WordsOf(chosen[0], contestants, 0), "; no other has less energy for certain");

  contestants[1] = Measured(40, 0.006);
  EXPECT_EQ(ChooseAlternatives(contestants, 0)[0].contestant, 1u);
  contestants[1].mutable_timing()->mutable_energy()->set_contended(true);
  EXPECT_FALSE(ChooseAlternatives(contestants, 0)[0].contestant.has_value());
}

TEST(Alternatives, AreNotLookedForWithoutTheFastestsOwnEnergy) {
  std::vector<v1::Trial> contestants = {Measured(40, 0.012), Measured(41, 0.006)};
  contestants[0].mutable_timing()->clear_energy();
  EXPECT_THAT(ChooseAlternatives(contestants, 0), IsEmpty());
}

// Of an incumbent, timed at `us`, with one other that took 10 mJ and 50 us, the least by both.
v1::Incumbent Beside(double us, double joules) {
  v1::Incumbent incumbent;
  *incumbent.mutable_timing() = Measured(us, joules).timing();
  incumbent.mutable_trial()->mutable_variant()->set_text("tiles:BLOCK=32,SPLITS=2");
  for (const v1::Objective objective : {v1::OBJECTIVE_ENERGY, v1::OBJECTIVE_EDP}) {
    v1::Alternative& one = *incumbent.add_alternatives();
    one.set_objective(objective);
    *one.mutable_trial() = Measured(50, 0.010);
  }
  return incumbent;
}
// "energy: other", "edp: itself".
std::vector<std::string> Compared(v1::Incumbent incumbent, const std::vector<v1::Trial>& known = {}) {
  CompareWithFastest(known, incumbent);
  std::vector<std::string> kept;
  for (const v1::Alternative& one : incumbent.alternatives()) {
    kept.push_back(absl::StrCat(Word(one.objective()), ": ", one.has_trial() ? "other" : "itself"));
  }
  return kept;
}

TEST(ComparedAlternatives, StayWhereTheyAreCertainlyLessOrItIsNotKnown) {
  EXPECT_THAT(Compared(Beside(48, 0.012)), ElementsAre("energy: other", "edp: other"));
  v1::Incumbent unknown = Beside(40, 0.001);
  unknown.mutable_timing()->clear_energy();
  EXPECT_THAT(Compared(unknown), ElementsAre("energy: other", "edp: other"));
}

TEST(ComparedAlternatives, GiveWayToAFastestThatIsAsGood) {
  EXPECT_THAT(Compared(Beside(40, 0.012)), ElementsAre("energy: other", "edp: itself"));
  EXPECT_THAT(Compared(Beside(40, 0.0101)), ElementsAre("energy: itself", "edp: itself")) << "spans overlap";
}

TEST(ComparedAlternatives, OfTheFastestItselfSayThatItIs) {
  v1::Incumbent incumbent = Beside(40, 0.010);
  incumbent.mutable_trial()->mutable_variant()->set_text("tiles:BLOCK=16,SPLITS=1");
  EXPECT_THAT(Compared(incumbent), ElementsAre("energy: itself", "edp: itself"));
  incumbent.mutable_timing()->set_contended(true);
  EXPECT_THAT(Compared(incumbent), ElementsAre("energy: itself", "edp: itself"));
}

TEST(ComparedAlternatives, GoWhereAThirdIsBetterThanTheFastest) {
  v1::Trial third = Measured(45, 0.0092);
  third.mutable_variant()->set_text("tiles:BLOCK=8,SPLITS=1");
  EXPECT_THAT(Compared(Beside(40, 0.0098), {third}), ElementsAre("edp: itself"));
  EXPECT_THAT(Compared(Beside(48, 0.0098), {third}), IsEmpty());
  v1::Trial fastest = third;
  fastest.mutable_variant()->set_text("tiles:BLOCK=32,SPLITS=2");
  EXPECT_THAT(Compared(Beside(48, 0.0098), {fastest}), ElementsAre("energy: itself", "edp: itself"))
      << "its own time of before is no other's";
  v1::Incumbent itself = Beside(48, 0.0098);
  itself.mutable_alternatives(0)->clear_trial();
  itself.mutable_alternatives(1)->clear_trial();
  EXPECT_THAT(Compared(itself), ElementsAre("energy: itself", "edp: itself"));
  EXPECT_THAT(Compared(itself, {third}), IsEmpty());
}

class KeptAlternatives : public ::testing::Test {
 protected:
  KeptAlternatives() {
    tuning_key_.problem = *ParseProblem("b1.h1.q128.d64.f16");
    tuning_key_.problem_text = ToText(tuning_key_.problem);
    tuning_key_.device = catalog::FakeDevice();
    tuning_key_.device.set_uuid("GPU-0");
    tuning_key_.toolchain = "fakec 1.0";
    v1::Alternative& alternative = *incumbent_.add_alternatives();
    alternative.set_objective(v1::OBJECTIVE_ENERGY);
    v1::Trial& trial = *alternative.mutable_trial();
    trial.mutable_variant()->set_text("tiles:BLOCK=16,SPLITS=1");
    trial.mutable_variant()->set_family("tiles");
    trial.set_device_id("cuda:0");
    trial.set_device_uuid("GPU-0");
    *trial.mutable_dependencies() = catalog::DependenciesOf(*families_.front(), tuning_key_);
    incumbent_.add_alternatives()->set_objective(v1::OBJECTIVE_EDP);
  }
  int Left(const std::function<bool(const v1::Trial&)>& wrong = nullptr) {
    v1::Incumbent incumbent = incumbent_;
    DropChanged(tuning_key_, families_, wrong, incumbent);
    return incumbent.alternatives_size();
  }

  std::vector<std::shared_ptr<const space::Family>> families_ = catalog::Families(catalog::SearchFamily());
  catalog::TuningKey tuning_key_;
  v1::Incumbent incumbent_;  // one with a trial, one without
};

TEST_F(KeptAlternatives, StayWhereNothingHasChanged) { EXPECT_EQ(Left(), 2); }

TEST_F(KeptAlternatives, GoWithTheSources) {
  families_ = catalog::Families(catalog::SearchFamily("source two"));
  EXPECT_EQ(Left(), 1);
}

TEST_F(KeptAlternatives, GoWithTheVariant) {
  incumbent_.mutable_alternatives(0)->mutable_trial()->mutable_variant()->set_text("tiles:BLOCK=24,SPLITS=1");
  EXPECT_EQ(Left(), 1);
}

TEST_F(KeptAlternatives, GoWithTheDriverAndTheCompiler) {
  tuning_key_.device.set_driver("999.9");
  EXPECT_EQ(Left(), 1);
  tuning_key_.device = catalog::FakeDevice();
  tuning_key_.device.set_uuid("GPU-0");
  tuning_key_.toolchain = "fakec 2.0";
  EXPECT_EQ(Left(), 1);
}

TEST_F(KeptAlternatives, GoWithTheCard) {
  tuning_key_.device.set_uuid("GPU-1");
  EXPECT_EQ(Left(), 1);
}

TEST_F(KeptAlternatives, GoWhereTheyAreWrong) {
  EXPECT_EQ(Left([](const v1::Trial& trial) { return trial.variant().family() == "tiles"; }), 1);
}

TEST_F(KeptAlternatives, GoWithAPin) {
  incumbent_.set_pinned(true);
  EXPECT_EQ(Left(), 0);
}

}  // namespace
}  // namespace attune::promotion
