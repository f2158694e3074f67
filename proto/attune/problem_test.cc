#include "proto/attune/problem.h"

#include <cmath>
#include <limits>
#include <string>

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
        "b1.h1.q113.kv203.d96.f16.causal-br", "b1.h1.q8.d32.bf16.window4.softcap30.5.bshd.lse",
        "b2.h4.q8.d64.f16.causal-br.softcap2.sinks.varlen.page16.lse", "b2.h4.q8.d64.f16.bshd.page1"}) {
    EXPECT_EQ(Canonical(text), text);
  }
}

TEST(ProblemText, EqualProblemsHaveOneSpelling) {
  EXPECT_EQ(Canonical("h8.b2.f16.d64.kv512.q512.kvh8.bhsd"), "b2.h8.q512.d64.f16");
  EXPECT_EQ(Canonical("b1.h1.q8.d64.f16.causal-br"), "b1.h1.q8.d64.f16.causal");
  EXPECT_EQ(Canonical("b1.h1.page4.lse.sinks.bshd.varlen.q8.d64.f16"), "b1.h1.q8.d64.f16.sinks.varlen.page4.lse");
}

TEST(ProblemText, CausalAlignmentsOfSequencesWithTheirOwnLengthsAreTwoProblems) {
  EXPECT_EQ(Canonical("b2.h1.q8.d64.f16.causal-br.varlen"), "b2.h1.q8.d64.f16.causal-br.varlen");
  EXPECT_EQ(Canonical("b2.h1.q8.d64.f16.causal-br.page4"), "b2.h1.q8.d64.f16.causal-br.page4");
}

TEST(ProblemText, AnErrorNamesThePartTheValueAndWhatIsAllowed) {
  EXPECT_THAT(Canonical("b2.h8.q512.d64"), HasSubstr("dtype (f16 or bf16) is missing"));
  EXPECT_THAT(Canonical("b2.h8.q512.d64.f32"), HasSubstr("'f32' is not known; allowed are"));
  EXPECT_THAT(Canonical("b2.h8.q0.d64.f16"), HasSubstr("'q0' must be an integer from 1 to 16777216"));
  EXPECT_THAT(Canonical("b2.h8.q5x.d64.f16"), HasSubstr("'q5x' must be an integer from 1 to 16777216"));
  EXPECT_THAT(Canonical("b2.b3.h8.q5.d64.f16"), HasSubstr("'b' is given twice"));
  EXPECT_THAT(Canonical("b2.h8.kvh3.q5.d64.f16"),
              HasSubstr("heads_kv is 3; allowed are divisors of heads_q, which is 8"));
  EXPECT_THAT(Canonical("b65536.h65536.q16777216.d64.f16"), HasSubstr("elements; allowed are"));
  EXPECT_THAT(Canonical("b2.h8.q5.d64.f16.varlen.bhsd"),
              HasSubstr("layout is bhsd; with varlen allowed is bshd, a token's heads one behind the other"));
  EXPECT_THAT(Canonical("b2.h8.q5.d64.f16.page0"), HasSubstr("'page0' must be an integer from 1 to 65536"));
  EXPECT_THAT(Canonical("b2.h8.q5.d64.f16.page65537"), HasSubstr("'page65537' must be an integer from 1 to 65536"));
  EXPECT_THAT(
      Canonical("b65536.h1.q65536.d1.f16.varlen"),
      HasSubstr("batch * max(seq_q, seq_kv in whole pages) is 4294967296; with varlen or page_size allowed are 1 "
                "to 2147483647"));
  EXPECT_THAT(Canonical("b65536.h8.q1.d128.f16.page65536"), HasSubstr("elements; allowed are"));
  EXPECT_THAT(Canonical("b2.h8.q5.d64.f16.sinks.sinks"), HasSubstr("'sinks' is given twice"));
  EXPECT_THAT(Canonical(""), HasSubstr("is not known"));
}

TEST(ProblemText, ANumberThatIsTooLargeNamesTheLargest) {
  EXPECT_THAT(Canonical("b65537.h8.q512.d64.f16"), HasSubstr("'b65537' must be an integer from 1 to 65536;"));
  EXPECT_THAT(Canonical("b1.h1.q99999999999999999999999.d64.f16"), HasSubstr("must be an integer from 1 to 16777216"));
  EXPECT_THAT(Canonical("b1.h1.q1e3.d64.f16"), HasSubstr("'q1e3' must be an integer from 1 to 16777216"));
  EXPECT_THAT(Canonical("b1.h1.q8.d64.f16.window9223372036854775807"), HasSubstr("must be an integer from 1 to 167"));
  EXPECT_THAT(Canonical("b1.h1.q8.d64.f16.softcap1e308"), HasSubstr("softcap is 1e+308; allowed are 0 (off) and 0.0"));
  EXPECT_THAT(Canonical("b1.h1.q8.d64.f16.softcap1e-300"), HasSubstr("softcap is 1e-300; allowed are 0 (off)"));
}

TEST(ProblemText, AnErrorRepeatsLittleOfWhatItWasGiven) {
  EXPECT_LT(Canonical(std::string(1 << 20, 'b')).size(), 500u);
  EXPECT_LT(Canonical("b1.h1.q" + std::string(1 << 20, '9')).size(), 500u);
  EXPECT_THAT(Canonical("b1.\x1b[31m"), HasSubstr("'\\x1b[31m' is not known"));
}

TEST(ProblemProto, AWindowAndASoftcapHaveBounds) {
  const auto error = [](auto set) {
    v1::Problem proto = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
    set(proto);
    return std::string(FromProto(proto).status().message());
  };
  EXPECT_THAT(error([](auto& p) { p.set_window(-1); }), HasSubstr("window is -1; allowed are 1 to 16777216 with mask"));
  EXPECT_THAT(error([](auto& p) { p.set_window(5); }), HasSubstr("window is 5; allowed are"));
  EXPECT_THAT(error([](auto& p) {
                p.set_mask(v1::MASK_WINDOW);
                p.set_window(std::numeric_limits<int64_t>::max());
              }),
              HasSubstr("window is 9223372036854775807; allowed are 1 to 16777216"));
  EXPECT_THAT(error([](auto& p) { p.set_softcap(std::numeric_limits<double>::quiet_NaN()); }),
              HasSubstr("softcap is nan; allowed are 0 (off) and"));
  EXPECT_THAT(error([](auto& p) { p.set_softcap(5e-324); }), HasSubstr("allowed are 0 (off) and 0.000001 to 1000000"));
}

TEST(ProblemProto, ConvertsThereAndBack) {
  for (absl::string_view text :
       {"b1.h4.kvh2.q7.kv9.d32.bf16.causal-br.lse", "b3.h4.q7.d32.f16.window3.softcap2.sinks.varlen.page16.lse"}) {
    const Problem problem = *ParseProblem(text);
    EXPECT_EQ(*FromProto(ToProto(problem)), problem);
  }
}

TEST(ProblemProto, VarlenIsBshdUnlessItIsToldOtherwise) {
  v1::Problem proto = ToProto(*ParseProblem("b2.h1.q3.d64.f16.varlen"));
  proto.clear_layout();
  EXPECT_EQ(FromProto(proto)->layout, v1::LAYOUT_BSHD);
  proto.set_layout(v1::LAYOUT_BHSD);
  EXPECT_THAT(std::string(FromProto(proto).status().message()), HasSubstr("layout is bhsd"));
}

TEST(ProblemProto, UnsetFieldsTakeTheirDefaults) {
  v1::Problem proto;
  proto.set_batch(1);
  proto.set_heads_q(2);
  proto.set_seq_q(3);
  proto.set_head_dim(64);
  EXPECT_EQ(ToText(*FromProto(proto)), "b1.h2.q3.d64.f16");
}

TEST(SequenceLengths, FallFromTheLongestToItsShareOfTheBatch) {
  const Lengths varlen = SequenceLengths(*ParseProblem("b4.h1.q10.kv7.d64.f16.varlen"));
  EXPECT_EQ(varlen.q, (std::vector<int64_t>{10, 8, 5, 3}));
  EXPECT_EQ(varlen.kv, (std::vector<int64_t>{7, 6, 4, 2}));
  EXPECT_EQ(varlen.total_q(), 26);
  EXPECT_EQ(varlen.total_kv(), 19);
}

TEST(SequenceLengths, OfKeysAloneFallWithPagesAlone) {
  const Lengths paged = SequenceLengths(*ParseProblem("b2.h1.q10.kv7.d64.f16.page4"));
  EXPECT_EQ(paged.q, (std::vector<int64_t>{10, 10}));
  EXPECT_EQ(paged.kv, (std::vector<int64_t>{7, 4}));
}

TEST(SequenceLengths, AreAllTheSameOtherwise) {
  const Lengths fixed = SequenceLengths(*ParseProblem("b2.h1.q10.kv7.d64.f16"));
  EXPECT_EQ(fixed.q, (std::vector<int64_t>{10, 10}));
  EXPECT_EQ(fixed.kv, (std::vector<int64_t>{7, 7}));
}

TEST(Flops, CountsTheVisiblePairsOfACausalMask) {
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.d1.f16.causal")), 4 * (1 + 2 + 3 + 4));
  // Bottom-right with more queries than keys: rows 0 and 1 see nothing.
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.kv2.d1.f16.causal-br")), 4 * (0 + 0 + 1 + 2));
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.kv2.d1.f16.causal")), 4 * (1 + 2 + 2 + 2));
}

TEST(Flops, CountsTheVisiblePairsOfAWindow) {
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.d1.f16.window2")), 4 * (1 + 2 + 2 + 2));
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q2.kv5.d1.f16.window3")), 4 * (3 + 3));
  EXPECT_EQ(Flops(*ParseProblem("b1.h1.q4.kv2.d1.f16.window1")), 4 * (0 + 0 + 1 + 1));
}

TEST(Flops, CountsEachSequencesOwnPairs) {
  // Lengths 4 and 2 of queries, 6 and 3 of keys.
  EXPECT_EQ(Flops(*ParseProblem("b2.h1.q4.kv6.d1.f16.varlen")), 4 * (4 * 6 + 2 * 3));
  EXPECT_EQ(Flops(*ParseProblem("b2.h1.q4.kv6.d1.f16.causal-br.varlen")), 4 * ((3 + 4 + 5 + 6) + (2 + 3)));
  EXPECT_EQ(Flops(*ParseProblem("b2.h1.q4.kv6.d1.f16.page2")), 4 * (4 * 6 + 4 * 3));
}

TEST(Flops, OfTheLongestSequencesAreCountedAtOnce) {
  EXPECT_GT(Flops(*ParseProblem("b60000.h1.q16000000.d1.f16.causal")), 0);
}

TEST(Bytes, CountsTheTokensOfEachSequence) {
  // 6 tokens of queries in and out, 9 of keys and values, two bytes an element; 4 bytes of log-sum-exp a row.
  EXPECT_EQ(Bytes(*ParseProblem("b2.h2.kvh1.q4.kv6.d8.f16.varlen.lse")), 16 * (2 * 2 * 6 + 2 * 9) + 4 * 2 * 6);
}

}  // namespace
}  // namespace attune
