#include "client/cli/sweep_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::StartsWith;

std::string Error(const std::string& text) {
  const auto plan = ParseSweepPlan("nightly.textproto", text);
  return plan.ok() ? "no error" : std::string(plan.status().message());
}

TEST(SweepPlan, ReadsListsProductsAndBudget) {
  const auto plan = ParseSweepPlan("nightly.textproto", R"(
    title: "nightly"
    shapes { problem: "b2.h8.q512.d64.f16" problem: "b1.h1.q128.d64.f16" }
    shapes { product { batch: [1, 2] heads_q: 8 seq_q: 512 head_dim: 64 dtype: "bf16" mask: "causal" } }
    budget { trials_per_problem: 100 time_per_problem { seconds: 60 } }
  )");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->shapes(0).problem_size(), 2);
  EXPECT_EQ(plan->shapes(1).product().batch_size(), 2);
  EXPECT_EQ(plan->budget().trials_per_problem(), 100);
}

TEST(SweepPlan, SaysWhereTheFormatIsWrong) {
  EXPECT_THAT(Error("title: \"x\"\nshapez {\n}"), StartsWith("nightly.textproto:2:"));
  EXPECT_THAT(Error("shapes {"), StartsWith("nightly.textproto:1:"));
}

TEST(SweepPlan, SaysWhichWordsAFieldMayHaveAndWhereAnotherStands) {
  const std::string words = "strategy is GUIDED; allowed: KIND_EXHAUSTIVE, KIND_RANDOM, KIND_GUIDED";
  EXPECT_THAT(Error("title: \"x\"\nstrategy: GUIDED\nshapes { problem: \"b2.h8.q512.d64.f16\" }"),
              StartsWith("nightly.textproto:2:11: " + words));
  EXPECT_THAT(Error("strategy:\n  GUIDED\n\n"), StartsWith("nightly.textproto:2:3: " + words));
  EXPECT_THAT(Error("budget {}\nobjective: energy"),
              StartsWith("nightly.textproto:2:12: objective is energy; allowed: "));
}

TEST(SweepPlan, SaysWhereAProblemIsWrong) {
  EXPECT_THAT(Error("shapes {\n  problem: \"b2.h8.q512.d64.f16\"\n  problem: \"b2.h8.q512.d64.f32\"\n}"),
              StartsWith("nightly.textproto:3:3: problem 'b2.h8.q512.d64.f32'"));
}

TEST(SweepPlan, SaysWhereAProductIsWrong) {
  EXPECT_EQ(Error("shapes {\n  product {\n    batch: 1\n    dtype: \"f32\"\n  }\n}"),
            "nightly.textproto:4:5: dtype is 'f32'; allowed: f16, bf16");
  EXPECT_EQ(Error("shapes { product {\n seq_q: 0 } }"), "nightly.textproto:2:2: seq_q is 0; allowed: integers above 0");
  EXPECT_THAT(Error("shapes { product { mask: \"diagonal\" } }"), StartsWith("nightly.textproto:1:20: mask is 'dia"));
}

TEST(SweepPlan, APlanWithoutShapesIsAnError) {
  EXPECT_THAT(Error("title: \"x\""), StartsWith("nightly.textproto:1:1: the plan has no shapes"));
}

TEST(SweepPlan, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadSweepPlan("/nonexistent.textproto").status()));
}

}  // namespace
}  // namespace attune::cli
