#include "proto/attune/problem.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

std::string Canonical(absl::string_view text) {
  absl::StatusOr<Problem> problem = ParseProblem(text);
  return problem.ok() ? ToText(*problem) : std::string(problem.status().message());
}

TEST(ProblemText, CanonicalTextsReadBackAsThemselves) {
  for (absl::string_view text :
       {"b2.h8.q512.d64.f16", "b1.h32.kvh8.q1.kv8192.d128.bf16", "b2.h8.q512.d64.f16.causal",
        "b1.h1.q113.kv203.d96.f16.causal-br", "b1.h1.q8.d32.bf16.window4.softcap30.5.bshd.lse"}) {
    EXPECT_EQ(Canonical(text), text);
  }
}

TEST(ProblemText, EqualProblemsHaveOneSpelling) {
  EXPECT_EQ(Canonical("h8.b2.f16.d64.kv512.q512.kvh8.bhsd"), "b2.h8.q512.d64.f16");
  EXPECT_EQ(Canonical("b1.h1.q8.d64.f16.causal-br"), "b1.h1.q8.d64.f16.causal");
}

TEST(ProblemText, AnErrorNamesThePartTheValueAndWhatIsAllowed) {
  EXPECT_THAT(Canonical("b2.h8.q512.d64"), HasSubstr("dtype (f16 or bf16) is missing"));
  EXPECT_THAT(Canonical("b2.h8.q512.d64.f32"), HasSubstr("'f32' is not known; allowed are"));
  EXPECT_THAT(Canonical("b2.h8.q0.d64.f16"), HasSubstr("'q0' needs a positive whole number"));
  EXPECT_THAT(Canonical("b2.h8.q5x.d64.f16"), HasSubstr("'q5x' needs a positive whole number"));
  EXPECT_THAT(Canonical("b2.b3.h8.q5.d64.f16"), HasSubstr("'b' is given twice"));
  EXPECT_THAT(Canonical("b2.h8.kvh3.q5.d64.f16"),
              HasSubstr("heads_kv is 3; allowed are divisors of heads_q, which is 8"));
  EXPECT_THAT(Canonical("b65536.h65536.q16777216.d64.f16"), HasSubstr("elements; allowed are"));
  EXPECT_THAT(Canonical(""), HasSubstr("is not known"));
}

TEST(ProblemProto, ConvertsThereAndBack) {
  const Problem problem = *ParseProblem("b1.h4.kvh2.q7.kv9.d32.bf16.causal-br.lse");
  EXPECT_EQ(*FromProto(ToProto(problem)), problem);
}

TEST(ProblemProto, UnsetFieldsTakeTheirDefaults) {
  v1::Problem proto;
  proto.set_batch(1);
  proto.set_heads_q(2);
  proto.set_seq_q(3);
  proto.set_head_dim(64);
  EXPECT_EQ(ToText(*FromProto(proto)), "b1.h2.q3.d64.f16");
}

TEST(Flops, CountsTheVisiblePairsOfACausalMask) {
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.d1.f16.causal")), 4 * (1 + 2 + 3 + 4));
  // Bottom-right with more queries than keys: rows 0 and 1 see nothing.
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.kv2.d1.f16.causal-br")), 4 * (0 + 0 + 1 + 2));
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.kv2.d1.f16.causal")), 4 * (1 + 2 + 2 + 2));
}

}  // namespace
}  // namespace attune
