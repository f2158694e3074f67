#include "client/cli/energy_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

v1::Trial Of(const char* variant, double joules, double low, double high) {
  v1::Trial trial;
  trial.set_problem_text("b1.h8.q1024.d128.f16");
  trial.mutable_variant()->set_text(variant);
  v1::Energy& energy = *trial.mutable_timing()->mutable_energy();
  energy.set_joules(joules);
  energy.set_low_joules(low);
  energy.set_high_joules(high);
  return trial;
}

v1::TuneResult Result() {
  v1::TuneResult result;
  *result.mutable_winner() = Of("f:A=1", 0.0400, 0.0398, 0.0402);
  *result.add_play_off() = result.winner();
  *result.add_play_off() = Of("f:A=2", 0.0380, 0.0379, 0.0382);
  result.add_play_off()->mutable_variant()->set_text("f:A=3");  // not measured
  return result;
}

TEST(Joules, HasAUnitThatFits) {
  EXPECT_EQ(Joules(12.5), "12.5 J");
  EXPECT_EQ(Joules(0.01234), "12.34 mJ");
  EXPECT_EQ(Joules(0.0000123), "12.3 uJ");
}

TEST(EnergyText, SaysHowItWasMeasured) {
  v1::Energy energy = Of("f:A=1", 0.04, 0.0398, 0.0402).timing().energy();
  energy.set_spans(3);
  energy.set_power_w(401.2);
  energy.set_seconds(0.987);
  EXPECT_EQ(EnergyText(energy), "40 mJ a run (39.8 mJ to 40.2 mJ in 3 spans), 401 W over 0.99 s");
  energy.set_contended(true);
  EXPECT_EQ(EnergyText(energy),
            "40 mJ a run (39.8 mJ to 40.2 mJ in 3 spans), 401 W over 0.99 s, another process was on the device");
}

TEST(LeastEnergy, NamesWhoTakesLessThanTheWinnerForCertain) {
  EXPECT_EQ(LeastEnergy(Result()),
            "Least energy: f:A=2 takes 38 mJ a run, 5.0 % less than the winner; attune serve b1.h8.q1024.d128.f16 "
            "f:A=2 serves it");
}

TEST(LeastEnergy, IsServedWhereItWasMeasured) {
  v1::TuneResult result = Result();
  result.mutable_winner()->set_device_id("cuda:1");
  result.mutable_winner()->set_policy(v1::POLICY_L2_WARM);
  EXPECT_THAT(LeastEnergy(result), ::testing::EndsWith("f:A=2 --device cuda:1 --policy l2-warm serves it"));
}

// f:A=2 is what has the least energy, as this play-off has timed it.
v1::TuneResult WithAlternatives() {
  v1::TuneResult result = Result();
  const auto timed = [](double us, v1::Timing& timing) {
    timing.set_low_us(us);
    timing.set_median_us(us);
    timing.set_high_us(us);
  };
  timed(100, *result.mutable_winner()->mutable_timing());
  timed(110, *result.mutable_play_off(1)->mutable_timing());
  v1::Alternative& least = *result.mutable_incumbent()->add_alternatives();
  least.set_objective(v1::OBJECTIVE_ENERGY);
  *least.mutable_trial() = result.play_off(1);
  result.mutable_incumbent()->add_alternatives()->set_objective(v1::OBJECTIVE_EDP);  // the winner itself
  return result;
}

TEST(LeastEnergy, NamesTheAlternativesThatAreChosen) {
  EXPECT_EQ(LeastEnergy(WithAlternatives()),
            "Least energy: f:A=2 has 38 mJ a run, 5.0 % less than the winner, in 1.100 times its time; attune best "
            "b1.h8.q1024.d128.f16 --objective energy answers it");
}

TEST(LeastEnergy, NamesWhatWasMeasuredNowRatherThanAnOlderAlternative) {
  const std::string measured =
      "Least energy: f:A=2 takes 38 mJ a run, 5.0 % less than the winner; attune serve b1.h8.q1024.d128.f16 f:A=2 "
      "serves it";
  v1::TuneResult another = WithAlternatives();
  v1::Trial& older = *another.mutable_incumbent()->mutable_alternatives(0)->mutable_trial();
  older = Of("f:A=4", 0.0370, 0.0369, 0.0371);
  EXPECT_EQ(LeastEnergy(another), measured);
  older = another.play_off(1);
  older.mutable_timing()->mutable_energy()->set_joules(0.0381);
  EXPECT_EQ(LeastEnergy(another), measured) << "the same, measured before";
}

TEST(LeastEnergy, NamesNoAlternativeThatIsNotLessForCertain) {
  v1::TuneResult result = WithAlternatives();
  for (v1::Trial* trial :
       {result.mutable_play_off(1), result.mutable_incumbent()->mutable_alternatives(0)->mutable_trial()}) {
    trial->mutable_timing()->mutable_energy()->set_high_joules(0.0399);
  }
  EXPECT_EQ(LeastEnergy(result), "");
}

TEST(LeastEnergy, IsNobodyWhereSpansOverlapOrTheDeviceWasShared) {
  v1::TuneResult overlaps = Result();
  overlaps.mutable_play_off(1)->mutable_timing()->mutable_energy()->set_high_joules(0.0399);
  EXPECT_EQ(LeastEnergy(overlaps), "");
  v1::TuneResult contended = Result();
  contended.mutable_play_off(1)->mutable_timing()->mutable_energy()->set_contended(true);
  EXPECT_EQ(LeastEnergy(contended), "");
}

TEST(EnergyTable, HasWhoWasMeasuredTheThriftiestFirst) {
  const std::optional<Table> table = EnergyTable(Result());
  ASSERT_TRUE(table.has_value());
  const std::string text = table->Render(200, /*colored=*/false);
  EXPECT_LT(text.find("f:A=2"), text.find("f:A=1"));
  EXPECT_NE(text.find("f:A=1"), std::string::npos);
  EXPECT_EQ(text.find("f:A=3"), std::string::npos);
  EXPECT_FALSE(EnergyTable(v1::TuneResult()).has_value());
}

}  // namespace
}  // namespace attune::cli
