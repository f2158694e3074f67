// What is tested on golden vectors (problem_golden_test.cc) is not tested here.
#include "proto/attune/problem.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

std::string Canonical(absl::string_view text) {
  absl::StatusOr<Problem> problem = ParseProblem(text);
  return problem.ok() ? ToText(*problem) : std::string(problem.status().message());
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
  EXPECT_THAT(error([](auto& p) { p.set_window(-1); }), HasSubstr("window is -1; allowed: 1 to 16777216 with mask"));
  EXPECT_THAT(error([](auto& p) { p.set_window(5); }), HasSubstr("window is 5; allowed:"));
  EXPECT_THAT(error([](auto& p) {
                p.set_mask(v1::MASK_WINDOW);
                p.set_window(std::numeric_limits<int64_t>::max());
              }),
              HasSubstr("window is 9223372036854775807; allowed: 1 to 16777216"));
  EXPECT_THAT(error([](auto& p) { p.set_softcap(std::numeric_limits<double>::quiet_NaN()); }),
              HasSubstr("softcap is nan; allowed: 0 (off) and"));
  EXPECT_THAT(error([](auto& p) { p.set_softcap(5e-324); }), HasSubstr("allowed: 0 (off) and 0.000001 to 1000000"));
}

TEST(ProblemProto, ConvertsThereAndBack) {
  for (absl::string_view text :
       {"b1.h4.kvh2.q7.kv9.d32.bf16.causal-br.lse", "b3.h4.q7.d32.f16.window3.softcap2.sinks.varlen.page16.lse",
        "b1.h4.q7.d32.bf16.kve5m2"}) {
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

TEST(ProblemProto, KeysAndValuesOfTheDTypeAreWrittenInOneWay) {
  v1::Problem proto = ToProto(*ParseProblem("b2.h1.q3.d64.bf16"));
  proto.set_kv_dtype(v1::DTYPE_BF16);
  EXPECT_EQ(*FromProto(proto), *ParseProblem("b2.h1.q3.d64.bf16"));
  EXPECT_EQ(ToProto(*FromProto(proto)).kv_dtype(), v1::DTYPE_UNSPECIFIED);
}

TEST(ProblemProto, KeysAndValuesAreOfTheDTypeOrOf8Bits) {
  v1::Problem proto = ToProto(*ParseProblem("b2.h1.q3.d64.bf16"));
  proto.set_kv_dtype(v1::DTYPE_F16);
  EXPECT_THAT(std::string(FromProto(proto).status().message()),
              HasSubstr("kv_dtype is f16; allowed: e4m3, e5m2 and the dtype, which is bf16"));
  proto.set_kv_dtype(static_cast<v1::DType>(9));
  EXPECT_THAT(std::string(FromProto(proto).status().message()), HasSubstr("kv_dtype 9"));
}

TEST(ProblemProto, QueriesAreNeverOf8Bits) {
  v1::Problem proto = ToProto(*ParseProblem("b2.h1.q3.d64.bf16"));
  proto.set_dtype(v1::DTYPE_E4M3);
  EXPECT_THAT(std::string(FromProto(proto).status().message()), HasSubstr("dtype is e4m3; allowed: f16, bf16"));
}

TEST(ProblemProto, PagesHaveABoundBeforeAnythingIsRoundedUpToThem) {
  v1::Problem proto = ToProto(*ParseProblem("b1.h1.q8.d64.f16"));
  for (const int64_t page_size : {int64_t{-1}, int64_t{65537}, std::numeric_limits<int64_t>::max()}) {
    proto.set_page_size(page_size);
    EXPECT_THAT(std::string(FromProto(proto).status().message()),
                HasSubstr(absl::StrCat("page_size is ", page_size, "; allowed: 0 (not paged) and 1 to 65536")));
  }
}

TEST(ProblemProto, UnsetFieldsTakeTheirDefaults) {
  v1::Problem proto;
  proto.set_batch(1);
  proto.set_heads_q(2);
  proto.set_seq_q(3);
  proto.set_head_dim(64);
  EXPECT_EQ(ToText(*FromProto(proto)), "b1.h2.q3.d64.f16");
}

TEST(Flops, OfTheLongestSequencesAreCountedAtOnce) {
  EXPECT_GT(Flops(*ParseProblem("b60000.h1.q16000000.d1.f16.causal")), 0);
}

}  // namespace
}  // namespace attune
