#include "proto/attune/expand_plan.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attune {
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

TEST(ExpandPlan, ListsKeepTheirOrderAndDropDoubles) {
  EXPECT_THAT(Texts(Plan(R"(shapes { problem: "b2.h8.q512.d64.f16" problem: "b1.h1.q128.d64.f16" }
                            shapes { problem: "b2.h8.kvh8.q512.d64.f16" })")),
              ElementsAre("b2.h8.q512.d64.f16", "b1.h1.q128.d64.f16"));
}

TEST(ExpandPlan, ProductsAreEveryCombination) {
  EXPECT_THAT(Texts(Plan(R"(shapes { product { batch: 1 heads_q: 8 heads_kv: [2, 8] seq_q: 128 seq_kv: 256 head_dim: 64
                                     dtype: "bf16" mask: ["none", "causal-br"] } })")),
              ElementsAre("b1.h8.kvh2.q128.kv256.d64.bf16", "b1.h8.kvh2.q128.kv256.d64.bf16.causal-br",
                          "b1.h8.q128.kv256.d64.bf16", "b1.h8.q128.kv256.d64.bf16.causal-br"));
}

TEST(ExpandPlan, UnsetListsDefaultAsInTheCanonicalText) {
  EXPECT_THAT(Texts(Plan("shapes { product { batch: [1, 2] heads_q: 4 seq_q: 64 head_dim: 32 } }")),
              ElementsAre("b1.h4.q64.d32.f16", "b2.h4.q64.d32.f16"));
}

TEST(ExpandPlan, ErrorsNameTheEntry) {
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

TEST(ExpandPlan, AProductBeyondTheLimitIsRefusedWithoutBeingBuilt) {
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

TEST(ExpandPlan, ProductsTogetherHaveTheSameLimitAndNoneIsBuilt) {
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

TEST(ExpandPlan, ListsWhoseProductOverflowsAreRefused) {
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

}  // namespace
}  // namespace attune
