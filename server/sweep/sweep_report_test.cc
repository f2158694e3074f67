#include "server/sweep/sweep_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "server/sweep/sweep_outcome.h"

namespace attune::sweep {
namespace {

using ::testing::HasSubstr;

v1::Timing Timing(double low, double median, double high) {
  v1::Timing timing;
  timing.set_low_us(low);
  timing.set_median_us(median);
  timing.set_high_us(high);
  return timing;
}

TEST(SweepReading, WithinTheRegressionShareIsTheSameEvenIfApart) {
  EXPECT_EQ(Read(Timing(99, 100, 101), Timing(101.4, 101.5, 101.6), 0.02), Reading::kSame);
}

TEST(SweepReading, BeyondItAndApartIsFasterOrSlower) {
  EXPECT_EQ(Read(Timing(99, 100, 101), Timing(109, 110, 111), 0.02), Reading::kSlower);
  EXPECT_EQ(Read(Timing(99, 100, 101), Timing(89, 90, 91), 0.02), Reading::kFaster);
}

TEST(SweepReading, BeyondItButOverlappingIsUnclear) {
  EXPECT_EQ(Read(Timing(90, 100, 110), Timing(95, 105, 115), 0.02), Reading::kUnclear);
}

TEST(SweepReading, AContendedTimingSaysNothing) {
  v1::Timing contended = Timing(109, 110, 111);
  contended.set_contended(true);
  EXPECT_EQ(Read(Timing(99, 100, 101), contended, 0.02), Reading::kUnclear);
}

TEST(SweepOutcome, SlowerTakesThreeCyclesInARow) {
  using enum Reading;
  EXPECT_EQ(Settle({kSlower}), std::nullopt);
  EXPECT_EQ(Settle({kSlower, kSlower}), std::nullopt);
  EXPECT_EQ(Settle({kSlower, kSlower, kSlower}), v1::SweepReport::OUTCOME_SLOWER);
  EXPECT_EQ(Settle({kSlower, kSlower, kUnclear, kSlower, kSlower, kSlower}), v1::SweepReport::OUTCOME_SLOWER);
  EXPECT_EQ(Settle({kFaster, kFaster, kFaster}), v1::SweepReport::OUTCOME_FASTER);
}

TEST(SweepOutcome, OneReadingThatSaysSameSettlesIt) {
  using enum Reading;
  EXPECT_EQ(Settle({kSlower, kSlower, kSame}), v1::SweepReport::OUTCOME_SAME);
}

TEST(SweepOutcome, WhatDoesNotSettleIsAmbiguous) {
  using enum Reading;
  EXPECT_EQ(Settle({kSlower, kUnclear, kFaster, kSlower, kSlower}), std::nullopt);
  EXPECT_EQ(Settle({kSlower, kUnclear, kFaster, kSlower, kUnclear, kSlower}), v1::SweepReport::OUTCOME_AMBIGUOUS);
}

TEST(SweepReportPage, SaysTotalsRowsAndRegressions) {
  v1::SweepReport report;
  report.set_title("Nightly");
  report.set_device_id("cuda:0");
  v1::SweepReport::Row& slower = *report.add_rows();
  slower.set_problem("b1.h1.q128.d64.f16");
  slower.set_outcome(v1::SweepReport::OUTCOME_SLOWER);
  slower.set_before_us(100);
  slower.set_after_us(110);
  slower.set_detail("one|two");
  v1::SweepReport::Row& fresh = *report.add_rows();
  fresh.set_problem("b2.h8.q512.d64.f16");
  fresh.set_outcome(v1::SweepReport::OUTCOME_NEW);
  fresh.set_after_us(12.8);
  fresh.set_trials(30);
  fresh.set_compiles(10);
  Complete(report);
  EXPECT_TRUE(report.regression());
  EXPECT_EQ(report.trials(), 30);
  EXPECT_EQ(report.compiles(), 10);
  EXPECT_THAT(report.markdown(), HasSubstr("# Nightly\n"));
  EXPECT_THAT(report.markdown(), HasSubstr("2 problems on cuda:0: 1 NEW, 1 SLOWER. 30 trials, 10 compiles."));
  EXPECT_THAT(report.markdown(),
              HasSubstr("| b1.h1.q128.d64.f16 | SLOWER | 100 | 110 | +10.0 % |  | 0 | 0 | one\\|two |\n"));
  EXPECT_THAT(report.markdown(), HasSubstr("| b2.h8.q512.d64.f16 | NEW | - | 12.8 | - |"));
}

TEST(SweepReportPage, HasNoControlCharacterOfOthersAndCountsOneAsOne) {
  v1::SweepReport report;
  report.set_title("n\x1b[31m2");
  report.set_device_id("cuda:0");
  v1::SweepReport::Row& row = *report.add_rows();
  row.set_problem("b1.h1.q128.d64.f16");
  row.set_outcome(v1::SweepReport::OUTCOME_FAILED);
  row.set_detail("one\ntwo\x07");
  row.set_trials(1);
  row.set_compiles(1);
  Complete(report);
  EXPECT_THAT(report.markdown(), HasSubstr("# n\\x1b[31m2\n"));
  EXPECT_THAT(report.markdown(), HasSubstr("1 problem on cuda:0: 1 FAILED. 1 trial, 1 compile.\n"));
  EXPECT_THAT(report.markdown(), HasSubstr("| one two\\x07 |\n"));
}

TEST(ErrorOf, IsThatNoProblemHasAResultAndOneFailed) {
  v1::SweepReport report;
  const auto add = [&](v1::SweepReport::Outcome outcome) {
    v1::SweepReport::Row& row = *report.add_rows();
    row.set_problem(absl::StrCat("b", report.rows_size(), ".h1.q1.d64.f16"));
    row.set_outcome(outcome);
    row.set_detail("no family applies");
  };
  EXPECT_TRUE(ErrorOf(report).ok());
  add(v1::SweepReport::OUTCOME_SKIPPED);
  EXPECT_TRUE(ErrorOf(report).ok()) << "it was not reached";
  add(v1::SweepReport::OUTCOME_FAILED);
  add(v1::SweepReport::OUTCOME_FAILED);
  EXPECT_THAT(std::string(ErrorOf(report).message()), HasSubstr("2 of 3 problems FAILED; 1 of 3 problems SKIPPED"));
  EXPECT_THAT(std::string(ErrorOf(report).message()), HasSubstr("the first, b2.h1.q1.d64.f16: no family applies"));
  add(v1::SweepReport::OUTCOME_SLOWER);
  EXPECT_TRUE(ErrorOf(report).ok()) << "its report says it all";
}

}  // namespace
}  // namespace attune::sweep
