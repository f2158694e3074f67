#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/half.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Output {
  explicit Output(const char* text) : problem(*ParseProblem(text)) {
    const int64_t size = problem.batch * problem.heads_q * problem.seq_q * problem.head_dim;
    reference.assign(size, 1.0f);
    out.assign(size, FromFloat(problem.dtype, 1.0f));
  }
  Comparison Compare(double plain_error = 1) const { return CompareOutput(problem, out, reference, plain_error); }
  void Set(int64_t index, float value) { out[index] = FromFloat(problem.dtype, value); }

  Problem problem;
  std::vector<float> reference;
  std::vector<uint16_t> out;
};

TEST(CompareOutput, AcceptsWhatIsWithinTolerance) {
  Output output("b1.h2.q64.d64.f16");
  output.Set(100, 1.001f);
  const Comparison comparison = output.Compare();
  EXPECT_TRUE(comparison.ok) << comparison.detail;
  EXPECT_NEAR(comparison.max_abs_error, 0.001, 1e-4);
}

TEST(CompareOutput, OneOf33MillionElementsMayBeFurtherOffThanOneOfAMillion) {
  for (const auto& [text, right] :
       {std::pair("b1.h1.q8192.d128.f16", false), std::pair("b32.h8.q1024.d128.f16", true)}) {
    Output output(text);
    output.reference.assign(output.reference.size(), 0.07f);
    output.out.assign(output.out.size(), FloatToF16(0.07f));
    output.Set(100, 0.07f + 0.0013f);  // 0.00121 are allowed of a million, 0.00144 of 33 million
    EXPECT_EQ(output.Compare().ok, right) << text;
    output.Set(100, 0.07f + 0.0016f);
    EXPECT_FALSE(output.Compare().ok) << text;
  }
}

TEST(CompareOutput, NamesTheFirstWrongElementAndHowManyThereAre) {
  Output output("b2.h3.q4.d8.f16");
  output.Set(((1 * 3 + 2) * 4 + 3) * 8 + 5, 1.5f);
  output.Set(2 * 3 * 4 * 8 - 1, -1.0f);
  const Comparison comparison = output.Compare();
  EXPECT_FALSE(comparison.ok);
  EXPECT_THAT(comparison.detail, HasSubstr("O[batch 1, head 2, row 3, dim 5] is 1.5, the reference 1 "));
  EXPECT_THAT(comparison.detail, HasSubstr("2 of 192 elements are wrong"));
  EXPECT_EQ(comparison.max_abs_error, 2);
}

TEST(CompareOutput, NamesElementsOfTheOtherLayoutToo) {
  Output output("b2.h3.q4.d8.f16.bshd");
  output.Set(((1 * 4 + 3) * 3 + 2) * 8 + 5, 1.5f);
  EXPECT_THAT(output.Compare().detail, HasSubstr("O[batch 1, head 2, row 3, dim 5]"));
}

TEST(CompareOutput, NaNAndInfinityNeverPass) {
  for (float bad : {kNan, kInfinity, -kInfinity}) {
    Output output("b1.h2.q700.d64.f16");  // several chunks; the bad element in the last
    output.Set(2 * 700 * 64 - 1, bad);
    const Comparison comparison = output.Compare();
    EXPECT_FALSE(comparison.ok) << bad;
    EXPECT_EQ(comparison.max_abs_error, kInfinity);
  }
}

TEST(CompareOutput, Bf16HasTenTimesTheTolerance) {
  Output f16("b1.h1.q8.d8.f16");
  Output bf16("b1.h1.q8.d8.bf16");
  f16.Set(3, 1.0078125f);
  bf16.Set(3, 1.0078125f);
  EXPECT_FALSE(f16.Compare().ok);
  EXPECT_TRUE(bf16.Compare().ok);
}

TEST(CompareOutput, RefusesMoreThanTwiceThePlainComputationsError) {
  Output output("b1.h1.q8.d8.f16");
  output.reference.assign(64, 0.125f);
  output.out.assign(64, FloatToF16(0.125f));
  output.Set(3, 0.1258f);  // off by 0.0008: within 1e-3
  EXPECT_TRUE(output.Compare(5e-4).ok);
  const Comparison comparison = output.Compare(1e-4);
  EXPECT_FALSE(comparison.ok);
  EXPECT_THAT(comparison.detail, HasSubstr("twice a plain computation's error"));
}

TEST(CompareOutput, OneRoundingStepIsFreeEvenWhenThePlainComputationIsExact) {
  Output output("b1.h1.q8.d8.f16");
  output.Set(3, 1 + 0x1p-10f);
  EXPECT_TRUE(output.Compare(0).ok);
}

TEST(CompareOutput, AnOutputOfAnotherSizeIsWrong) {
  Output output("b1.h1.q8.d8.f16");
  output.out.pop_back();
  EXPECT_FALSE(output.Compare().ok);
}

TEST(TallyOf, AnErrorAtItsBoundIsRightAndNaNCountsInNoMaximum) {
  const std::vector<float> out = {1, -2.5f, kNan, 4, kInfinity};
  const std::vector<float> reference = {1, -2, 3, kNan, 5};
  EXPECT_EQ(TallyOf(absl::MakeConstSpan(out).first(1), absl::MakeConstSpan(reference).first(1), 0, 0).wrong, 0);
  EXPECT_EQ(TallyOf(out, reference, 0.5f, 0).wrong, 3);
  const OutputTally tally = TallyOf(absl::MakeConstSpan(out).first(4), absl::MakeConstSpan(reference).first(4), 0, 0);
  EXPECT_EQ(tally.max_error, 0.5f);
  EXPECT_EQ(tally.max_reference, 3);
  EXPECT_EQ(TallyOf(out, reference, 0, 0).max_error, kInfinity);
}

TEST(CompareLse, EqualInfinitiesAreRight) {
  const std::vector<float> reference = {-kInfinity, 2};
  EXPECT_TRUE(CompareLse(std::vector<float>{-kInfinity, 2.0005f}, reference).ok);
}

TEST(CompareLse, FindsWhatIsWrong) {
  const std::vector<float> reference = {-kInfinity, 2, 3};
  for (const std::vector<float>& lse :
       {std::vector<float>{kInfinity, 2, 3}, {-1e30f, 2, 3}, {-kInfinity, kNan, 3}, {-kInfinity, 2, -kInfinity}}) {
    const Comparison comparison = CompareLse(lse, reference);
    EXPECT_FALSE(comparison.ok);
    EXPECT_THAT(comparison.detail, HasSubstr("1 of 3 elements are wrong"));
  }
}

}  // namespace
}  // namespace attune::verify
