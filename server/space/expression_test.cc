#include "server/space/expression.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::space {
namespace {

using ::testing::HasSubstr;

class ExpressionTest : public ::testing::Test {
 protected:
  ExpressionTest() {
    symbols_.Add("seq_q", 0, false).value = 512;
    symbols_.Add("ZERO", 1, false).value = 0;
    symbols_.Add("BLOCK_M", 2, false).value = 64;
    symbols_.Add("KV_SPLITS", 3, true).value = 3;
  }

  double Value(absl::string_view text) {
    absl::StatusOr<Expression> expression = Expression::Parse(text, symbols_);
    EXPECT_TRUE(expression.ok()) << expression.status();
    return expression.ok() ? expression->Evaluate() : std::nan("");
  }

  std::string Error(absl::string_view text) {
    absl::StatusOr<Expression> expression = Expression::Parse(text, symbols_);
    EXPECT_EQ(expression.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(expression.status().message());
  }

  Symbols symbols_;
};

TEST_F(ExpressionTest, ComputesWithSymbols) {
  EXPECT_EQ(Value("2 * BLOCK_M + 1"), 129);
  symbols_.Find("BLOCK_M")->value = 128;
  EXPECT_EQ(Value("2 * BLOCK_M + 1"), 257);
}

TEST_F(ExpressionTest, SeesASymbolsLaterValues) {
  absl::StatusOr<Expression> expression = Expression::Parse("BLOCK_M / 2", symbols_);
  EXPECT_EQ(expression->Evaluate(), 32);
  symbols_.Find("BLOCK_M")->value = 16;
  EXPECT_EQ(expression->Evaluate(), 8);
}

TEST_F(ExpressionTest, HasTheDocumentedFunctions) {
  EXPECT_EQ(Value("min(3, 1, 2)"), 1);
  EXPECT_EQ(Value("max(3, 1, 2)"), 3);
  EXPECT_EQ(Value("abs(0 - 4)"), 4);
  EXPECT_EQ(Value("sqrt(64)"), 8);
  EXPECT_EQ(Value("exp(0)"), 1);
  EXPECT_NEAR(Value("ln(exp(2))"), 2, 1e-12);
  EXPECT_EQ(Value("ceil(1.25)"), 2);
  EXPECT_EQ(Value("floor(1.75)"), 1);
  EXPECT_EQ(Value("ceil_div(seq_q + 1, BLOCK_M)"), 9);
  EXPECT_EQ(Value("mod(seq_q, BLOCK_M)"), 0);
  EXPECT_EQ(Value("mod(7, 4)"), 3);
  EXPECT_EQ(Value("mod(0 - 1, 4)"), 3);
  EXPECT_EQ(Value("is_pow2(64) + is_pow2(96) + is_pow2(0) + is_pow2(1)"), 2);
  EXPECT_EQ(Value("align_up(100, 64)"), 128);
}

TEST_F(ExpressionTest, BindsOperatorsAsCDoes) {
  EXPECT_EQ(Value("1 || 0 && 0"), 1);
  EXPECT_EQ(Value("0 && 0 || 1"), 1);
  EXPECT_EQ(Value("1 < 2 && 3 != 4"), 1);
  EXPECT_EQ(Value("BLOCK_M + 1 == 65"), 1);
  EXPECT_EQ(Value("!ZERO && !(BLOCK_M == 32)"), 1);
  EXPECT_EQ(Value("ZERO ? 5 : BLOCK_M > 32 ? 6 : 7"), 6);
}

TEST_F(ExpressionTest, AGuardAgainstZeroWorksAlthoughBothSidesAreEvaluated) {
  EXPECT_EQ(Value("ZERO == 0 || mod(seq_q, ZERO) == 0"), 1);
  EXPECT_EQ(Value("ZERO > 0 && mod(seq_q, ZERO) == 0"), 0);
  EXPECT_EQ(Value("ZERO == 0 || ceil_div(seq_q, ZERO) < 8"), 1);
  EXPECT_EQ(Value("ZERO > 0 && align_up(seq_q, ZERO) < 8"), 0);
  EXPECT_EQ(Value("ZERO > 0 && seq_q / ZERO > 8"), 0);
}

TEST_F(ExpressionTest, WhatHasNoValueDoesNotHold) {
  EXPECT_TRUE(std::isnan(Value("mod(seq_q, ZERO)")));
  EXPECT_FALSE(Expression::Parse("mod(seq_q, ZERO)", symbols_)->Holds());
  EXPECT_FALSE(Expression::Parse("ceil_div(seq_q, ZERO)", symbols_)->Holds());
  EXPECT_FALSE(Expression::Parse("ZERO", symbols_)->Holds());
  EXPECT_TRUE(Expression::Parse("BLOCK_M", symbols_)->Holds());
}

TEST_F(ExpressionTest, KnowsHowManyParametersItWaitsFor) {
  EXPECT_EQ(Expression::Parse("seq_q > 1", symbols_)->depth(), 0);
  EXPECT_EQ(Expression::Parse("ZERO + seq_q", symbols_)->depth(), 1);
  EXPECT_EQ(Expression::Parse("BLOCK_M * ZERO", symbols_)->depth(), 2);
  EXPECT_FALSE(Expression::Parse("BLOCK_M", symbols_)->launch_time());
  EXPECT_TRUE(Expression::Parse("BLOCK_M * KV_SPLITS", symbols_)->launch_time());
}

TEST_F(ExpressionTest, AnErrorQuotesTheExpressionAndSaysWhatIsWrong) {
  EXPECT_THAT(Error("BLOCK_K + 1"), HasSubstr("'BLOCK_K + 1': 'BLOCK_K' is no parameter"));
  EXPECT_THAT(Error("sin(1)"), HasSubstr("'sin' is no parameter"));
  EXPECT_THAT(Error("BLOCK_M = 3"), HasSubstr("'=' assigns; '==' compares"));
  EXPECT_THAT(Error("1, 2"), HasSubstr("more than one value"));
  EXPECT_THAT(Error("(1"), HasSubstr("Missing parenthesis"));
  EXPECT_THAT(Error(""), HasSubstr("empty"));
  EXPECT_THAT(Error("ceil_div(1)"), HasSubstr("Too few parameters"));
  EXPECT_THAT(Error("\"text\""), HasSubstr("Strings"));
  EXPECT_THAT(Error("7 % 4"), HasSubstr("Unexpected token"));
}

TEST_F(ExpressionTest, AFailedAssignmentChangesNothing) {
  Error("BLOCK_M = 3");
  EXPECT_EQ(symbols_.Find("BLOCK_M")->value, 64);
}

}  // namespace
}  // namespace attune::space
