#include "server/sweep/sweep_plan.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "server/sweep/sweep_outcome.h"
#include "server/sweep/sweep_report.h"

namespace attune::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::SweepPlan Plan(const std::string& text) {
  v1::SweepPlan plan;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &plan));
  return plan;
}

std::vector<std::string> Texts(const v1::SweepPlan& plan) {
  const absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  EXPECT_TRUE(problems.ok()) << problems.status();
  std::vector<std::string> texts;
  if (problems.ok()) {
    for (const Problem& problem : *problems) texts.push_back(ToText(problem));
  }
  return texts;
}

std::string Error(const std::string& plan) { return std::string(ExpandPlan(Plan(plan)).status().message()); }

TEST(SweepPlan, ListsKeepTheirOrderAndDropDoubles) {
  EXPECT_THAT(Texts(Plan(R"(shapes { problem: "b2.h8.q512.d64.f16" problem: "b1.h1.q128.d64.f16" }
                            shapes { problem: "b2.h8.kvh8.q512.d64.f16" })")),
              ElementsAre("b2.h8.q512.d64.f16", "b1.h1.q128.d64.f16"));
}

TEST(SweepPlan, ProductsAreEveryCombination) {
  EXPECT_THAT(Texts(Plan(R"(shapes { product { batch: 1 heads_q: 8 heads_kv: [2, 8] seq_q: 128 seq_kv: 256 head_dim: 64
                                     dtype: "bf16" mask: ["none", "causal-br"] } })")),
              ElementsAre("b1.h8.kvh2.q128.kv256.d64.bf16", "b1.h8.kvh2.q128.kv256.d64.bf16.causal-br",
                          "b1.h8.q128.kv256.d64.bf16", "b1.h8.q128.kv256.d64.bf16.causal-br"));
}

TEST(SweepPlan, UnsetListsDefaultAsInTheCanonicalText) {
  EXPECT_THAT(Texts(Plan("shapes { product { batch: [1, 2] heads_q: 4 seq_q: 64 head_dim: 32 } }")),
              ElementsAre("b1.h4.q64.d32.f16", "b2.h4.q64.d32.f16"));
}

TEST(SweepPlan, ErrorsNameTheEntry) {
  EXPECT_THAT(Error(R"(shapes { problem: "b1.h1.q128.d64.f16" } shapes { problem: "nonsense" })"),
              HasSubstr("shapes[1].problem[0]"));
  EXPECT_THAT(Error("shapes { product { batch: 1 heads_q: 6 heads_kv: 4 seq_q: 64 head_dim: 32 } }"),
              HasSubstr("shapes[0].product (b1.h6.kvh4.q64.d32.f16)"));
  EXPECT_THAT(Error("shapes { product { batch: 1 heads_q: 6 head_dim: 32 } }"), HasSubstr("shapes[0].product.seq_q"));
  EXPECT_THAT(Error(R"(shapes { product { batch: 1 heads_q: 6 seq_q: 1 head_dim: 32 mask: "window" } })"),
              HasSubstr("shapes[0].product.mask is 'window'; allowed: none, causal, causal-br"));
  EXPECT_THAT(Error("title: 'empty'"), HasSubstr("no problem"));
  EXPECT_THAT(Error(R"(regression: -1 shapes { problem: "b1.h1.q128.d64.f16" })"), HasSubstr("regression is -1"));
}

TEST(SweepPlan, AProductBeyondTheLimitIsRefusedWithoutBeingBuilt) {
  v1::SweepPlan plan;
  v1::SweepProduct& product = *plan.add_shapes()->mutable_product();
  for (int i = 1; i <= 1000; ++i) {
    product.add_batch(i);
    product.add_heads_q(i);
    product.add_seq_q(i);
  }
  product.add_head_dim(64);
  EXPECT_THAT(std::string(ExpandPlan(plan).status().message()), HasSubstr("allowed: at most 100000"));
}

TEST(SweepPlan, ProductsTogetherHaveTheSameLimitAndNoneIsBuilt) {
  v1::SweepPlan plan;
  for (int i = 0; i < 100; ++i) {  // 14 KB that ask for 10^7
    v1::SweepProduct& product = *plan.add_shapes()->mutable_product();
    for (int j = 1; j <= 100; ++j) product.add_batch(j);
    for (int j = 1; j <= 10; ++j) {
      product.add_heads_q(j);
      product.add_seq_q(j);
      product.add_head_dim(7 + j);
    }
  }
  plan.add_shapes()->add_problem("nonsense");  // comes too late to be looked at
  EXPECT_EQ(ExpandPlan(plan).status().message(),
            "shapes[1]: with it the plan comes to 200000 problems, the same ones counted each time; allowed: at most "
            "100000");
}

TEST(SweepPlan, ListsWhoseProductOverflowsAreRefused) {
  v1::SweepPlan plan;
  v1::SweepProduct& product = *plan.add_shapes()->mutable_product();
  for (int i = 1; i <= 10000; ++i) {
    for (auto* list : {product.mutable_batch(), product.mutable_heads_q(), product.mutable_heads_kv(),
                       product.mutable_seq_q(), product.mutable_seq_kv(), product.mutable_head_dim()}) {
      list->Add(1);
    }
  }
  EXPECT_THAT(std::string(ExpandPlan(plan).status().message()), HasSubstr("comes to 1e+24 problems"));
}

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

}  // namespace
}  // namespace attune::sweep
