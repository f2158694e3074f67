#include "proto/attune/objective.h"

#include "gtest/gtest.h"

namespace attune {
namespace {

v1::Timing Measured() {
  v1::Timing timing;
  timing.set_low_us(90);
  timing.set_median_us(100);
  timing.set_high_us(110);
  timing.mutable_energy()->set_low_joules(0.01);
  timing.mutable_energy()->set_joules(0.02);
  timing.mutable_energy()->set_high_joules(0.03);
  return timing;
}

TEST(Objective, EnergyIsInJoulesAndItsProductWithTheTimeInJouleSeconds) {
  const Amount energy = *AmountOf(v1::OBJECTIVE_ENERGY, Measured());
  EXPECT_EQ(energy.low, 0.01);
  EXPECT_EQ(energy.middle, 0.02);
  EXPECT_EQ(energy.high, 0.03);
  const Amount product = *AmountOf(v1::OBJECTIVE_EDP, Measured());
  EXPECT_DOUBLE_EQ(product.low, 0.9e-6);
  EXPECT_DOUBLE_EQ(product.middle, 2e-6);
  EXPECT_DOUBLE_EQ(product.high, 3.3e-6);
  EXPECT_EQ(AmountText(v1::OBJECTIVE_ENERGY, energy.middle), "20 mJ");
  EXPECT_EQ(AmountText(v1::OBJECTIVE_EDP, product.middle), "2 uJ s");
}

TEST(Objective, WhatWasDisturbedOrNotMeasuredHasNoAmount) {
  v1::Timing timing = Measured();
  timing.clear_energy();
  EXPECT_FALSE(AmountOf(v1::OBJECTIVE_ENERGY, timing).has_value());
  timing = Measured();
  timing.set_contended(true);
  EXPECT_FALSE(AmountOf(v1::OBJECTIVE_EDP, timing).has_value());
  timing = Measured();
  timing.mutable_energy()->set_contended(true);
  EXPECT_FALSE(AmountOf(v1::OBJECTIVE_ENERGY, timing).has_value());
}

TEST(Objective, OnlyWhatLiesWhollyBelowIsCertainlyLess) {
  EXPECT_TRUE(IsCertainlyLess({1, 2, 3}, {4, 5, 6}));
  EXPECT_FALSE(IsCertainlyLess({1, 2, 4}, {4, 5, 6}));
  EXPECT_FALSE(IsCertainlyLess({4, 5, 6}, {1, 2, 3}));
}

TEST(Objective, HasAWord) {
  EXPECT_EQ(Word(v1::OBJECTIVE_UNSPECIFIED), "time");
  EXPECT_EQ(Word(v1::OBJECTIVE_TIME), "time");
  EXPECT_EQ(Word(v1::OBJECTIVE_ENERGY), "energy");
  EXPECT_EQ(Word(v1::OBJECTIVE_EDP), "edp");
}

}  // namespace
}  // namespace attune
