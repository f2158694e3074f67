#include <algorithm>
#include <cmath>
#include <tuple>

#include "gtest/gtest.h"
#include "server/verify/half.h"
#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};
Moments MomentsOf(v1::DType dtype, const std::vector<uint16_t>& values) {
  double sum = 0, squares = 0;
  for (uint16_t bits : values) {
    const double value = ToFloat(dtype, bits);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / values.size();
  return {mean, std::sqrt(squares / values.size() - mean * mean)};
}

// The logits of one query row against all keys of its head.
std::vector<double> Logits(const Problem& problem, const Tensors& inputs, int64_t h, int64_t row) {
  const int64_t group = problem.heads_q / problem.heads_kv;
  const RowMap map(problem, SequenceLengths(problem), {});
  std::vector<double> logits;
  for (int64_t column = 0; column < problem.seq_kv; ++column) {
    double logit = 0;
    for (int64_t d = 0; d < problem.head_dim; ++d) {
      logit += ToFloat(problem.dtype, inputs.q[map.Query({0, h, row}) + d]) *
               ToFloat(problem.dtype, inputs.k[map.Key(0, h / group, column) + d]);
    }
    logits.push_back(logit / std::sqrt(static_cast<double>(problem.head_dim)));
  }
  return logits;
}

TEST(Inputs, HaveTheSizesOfTheProblem) {
  const Tensors inputs = MakeInputs(*ParseProblem("b2.h4.kvh2.q3.kv5.d32.f16"), Distribution::kNormal, 1);
  EXPECT_EQ(inputs.q.size(), 2 * 4 * 3 * 32);
  EXPECT_EQ(inputs.k.size(), 2 * 2 * 5 * 32);
  EXPECT_EQ(inputs.v.size(), 2 * 2 * 5 * 32);
}

TEST(Inputs, AreTheSameForASeedAndOthersForAnother) {
  const Problem problem = *ParseProblem("b1.h2.q700.d64.f16");  // large enough to be drawn by several threads
  for (Distribution distribution : Distributions()) {
    const Tensors first = MakeInputs(problem, distribution, 7);
    const Tensors again = MakeInputs(problem, distribution, 7);
    const Tensors other = MakeInputs(problem, distribution, 8);
    EXPECT_EQ(first.q, again.q);
    EXPECT_EQ(first.k, again.k);
    EXPECT_EQ(first.v, again.v);
    EXPECT_TRUE(first.q != other.q || distribution == Distribution::kCounting);
    EXPECT_NE(first.k, other.k);
    EXPECT_NE(first.v, other.v);
    EXPECT_NE(first.k, first.v);
  }
}

// Rows of `row` elements that differ.
int64_t DifferingRows(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, int64_t row) {
  int64_t rows = 0;
  for (size_t i = 0; i < a.size(); i += row) rows += std::equal(&a[i], &a[i] + row, &b[i]) ? 0 : 1;
  return rows;
}

TEST(Inputs, ChangedOnesDifferInSomeRowsOfEach) {
  for (const auto& [text, least, most] :
       {std::tuple{"b1.h1.q1.kv1.d16.f16", 1, 1}, {"b2.h2.q400.d16.bf16", 100, 300}}) {
    const Problem problem = *ParseProblem(text);
    const Tensors inputs = MakeInputs(problem, Distribution::kNormal, 7);
    const Tensors changed = MakeChangedInputs(problem, Distribution::kNormal, 7);
    for (const auto part : {&Tensors::q, &Tensors::k, &Tensors::v}) {
      EXPECT_GE(DifferingRows(inputs.*part, changed.*part, 16), least) << text;
      EXPECT_LE(DifferingRows(inputs.*part, changed.*part, 16), most) << text;
    }
  }
}

TEST(Inputs, ChangedOnesHaveTheSamePagesAndForbiddenRows) {
  const Problem problem = *ParseProblem("b3.h2.q1.kv100.d16.f16.page8");
  const Tensors inputs = MakeInputs(problem, Distribution::kNormal, 7);
  const Tensors changed = MakeChangedInputs(problem, Distribution::kNormal, 7);
  EXPECT_EQ(inputs.page_table, changed.page_table);
  EXPECT_EQ(inputs.kv_lengths, changed.kv_lengths);
  for (size_t i = 0; i < inputs.k.size(); ++i) {
    ASSERT_EQ(std::isnan(F16ToFloat(inputs.k[i])), std::isnan(F16ToFloat(changed.k[i]))) << i;
  }
}

TEST(Inputs, NormalIsStandardNormalInBothDtypes) {
  for (const char* text : {"b1.h1.q1024.d128.f16", "b1.h1.q1024.d128.bf16"}) {
    const Problem problem = *ParseProblem(text);
    const Moments moments = MomentsOf(problem.dtype, MakeInputs(problem, Distribution::kNormal, 3).k);
    EXPECT_NEAR(moments.mean, 0, 0.02) << text;
    EXPECT_NEAR(moments.deviation, 1, 0.02) << text;
  }
}

TEST(Inputs, OffsetMeanMovesKeysAndValuesByOne) {
  const Problem problem = *ParseProblem("b1.h1.q1024.d128.f16");
  const Tensors inputs = MakeInputs(problem, Distribution::kOffsetMean, 3);
  EXPECT_NEAR(MomentsOf(problem.dtype, inputs.q).mean, 0, 0.02);
  EXPECT_NEAR(MomentsOf(problem.dtype, inputs.k).mean, 1, 0.02);
  EXPECT_NEAR(MomentsOf(problem.dtype, inputs.v).mean, 1, 0.02);
}

TEST(Inputs, LargeLogitsNeedTheRunningMaximum) {
  const Problem problem = *ParseProblem("b1.h1.q64.kv1024.d64.f16");
  const Tensors inputs = MakeInputs(problem, Distribution::kLargeLogits, 3);
  double largest = 0;
  for (int64_t row = 0; row < problem.seq_q; ++row) {
    for (double logit : Logits(problem, inputs, 0, row)) largest = std::max(largest, std::abs(logit));
  }
  EXPECT_GT(largest, 25);  // exp overflows fp16 from 11.1 on
  EXPECT_LT(largest, 88);  // and fp32 from 88.7 on: the fp32 reference itself must not
}

TEST(Inputs, OneKeyThatEachRowSeesDominates) {
  const Problem problem = *ParseProblem("b1.h4.kvh2.q64.kv300.d64.bf16.causal-br.bshd");
  const Tensors inputs = MakeInputs(problem, Distribution::kDominantKey, 3);
  for (int64_t h : {0, 3}) {
    for (int64_t row : {0, 1, 63}) {
      const std::vector<double> logits = Logits(problem, inputs, h, row);
      const VisibleKeys visible = RowMap(problem, SequenceLengths(problem), {}).Visible({0, h, row});
      double largest = 0, sum = 0;
      for (int64_t column = visible.first; column < visible.end; ++column) {
        largest = std::max(largest, std::exp(logits[column]));
        sum += std::exp(logits[column]);
      }
      EXPECT_GT(largest / sum, 0.9) << "head " << h << " row " << row;
    }
  }
}

TEST(Inputs, RowsThatSeeNoKeyAreLeftAlone) {
  const Problem problem = *ParseProblem("b1.h1.q8.kv2.d32.f16.causal-br");  // rows 0 to 5 see nothing
  const Tensors inputs = MakeInputs(problem, Distribution::kDominantKey, 3);
  EXPECT_EQ(inputs.q.size(), 8 * 32);
}

}  // namespace
}  // namespace attune::verify
