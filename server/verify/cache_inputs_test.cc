#include "server/verify/cache_inputs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gtest/gtest.h"
#include "server/verify/float8.h"
#include "server/verify/half.h"

namespace attune::verify {
namespace {

constexpr char kE4m3Problem[] = "b4.h8.q64.kv256.d64.bf16.kve4m3";
constexpr char kE5m2Problem[] = "b4.h8.q64.kv256.d64.f16.kve5m2";

// The elements of K in all distributions.
std::set<int> KeysOf(const char* text) {
  std::set<int> keys;
  for (const Distribution distribution : Distributions()) {
    const Tensors inputs = MakeInputs(*ParseProblem(text), distribution, 1);
    keys.insert(inputs.k_codes.begin(), inputs.k_codes.end());
  }
  return keys;
}

// Of all rows of the sequence and head.
std::vector<double> ValuesOf(const Problem& problem, const Tensors& inputs, int64_t sequence, int64_t head) {
  const RowMap map(problem, SequenceLengths(problem), inputs.page_table);
  std::vector<double> values;
  for (int64_t row = 0; row < map.lengths().kv[sequence]; ++row) {
    const int64_t first = map.Key(sequence, head, row);
    for (int64_t i = first; i < first + problem.head_dim; ++i) {
      values.push_back(inputs.v_scales[sequence * problem.heads_kv + head] *
                       Float8ToFloat(problem.kv_dtype, inputs.v_codes[i]));
    }
  }
  return values;
}

double Deviation(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(CacheInputs, AreElementsOf8BitsAndAScaleForEachSequenceAndHead) {
  const Tensors inputs = MakeInputs(*ParseProblem("b2.h4.kvh2.q3.kv5.d32.f16.kve4m3"), Distribution::kNormal, 1);
  EXPECT_TRUE(inputs.k.empty() && inputs.v.empty());
  EXPECT_EQ(inputs.k_codes.size(), 2 * 2 * 5 * 32);
  EXPECT_EQ(inputs.v_codes.size(), 2 * 2 * 5 * 32);
  EXPECT_EQ(inputs.k_scales.size(), 2 * 2);
  EXPECT_EQ(inputs.v_scales.size(), 2 * 2);
}

TEST(CacheInputs, AreTheSameForASeedAndOthersForAnother) {
  for (const char* text : {kE4m3Problem, kE5m2Problem}) {
    const Problem problem = *ParseProblem(text);
    for (const Distribution distribution : Distributions()) {
      const Tensors first = MakeInputs(problem, distribution, 7);
      const Tensors again = MakeInputs(problem, distribution, 7);
      const Tensors other = MakeInputs(problem, distribution, 8);
      EXPECT_TRUE(first.q == again.q && first.k_codes == again.k_codes && first.v_codes == again.v_codes);
      EXPECT_TRUE(first.k_scales == again.k_scales && first.v_scales == again.v_scales);
      EXPECT_NE(first.k_codes, other.k_codes);
      EXPECT_NE(first.v_codes, other.v_codes);
      EXPECT_NE(first.k_scales, other.k_scales);
      EXPECT_TRUE(first.v_scales != other.v_scales || distribution == Distribution::kCounting);
      EXPECT_NE(first.k_scales, first.v_scales);
    }
  }
}

TEST(CacheInputs, AreAllFiniteElementsOfTheType) {
  for (const auto& [text, largest] : {std::pair(kE4m3Problem, 0x7e), std::pair(kE5m2Problem, 0x7b)}) {
    std::set<int> finite;
    for (int magnitude = 0; magnitude <= largest; ++magnitude) finite.insert({magnitude, magnitude | 0x80});
    EXPECT_EQ(KeysOf(text), finite) << text;
  }
}

TEST(CacheInputs, ScalesSpanSixOrdersOfMagnitudeWhateverTheHeads) {
  const auto span = [](const char* text) {
    std::vector<float> scales;
    for (const Distribution distribution : Distributions()) {
      const Tensors inputs = MakeInputs(*ParseProblem(text), distribution, 1);
      scales.insert(scales.end(), inputs.v_scales.begin(), inputs.v_scales.end());
    }
    const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
    return *most / *least;
  };
  EXPECT_GT(span(kE4m3Problem), 1e6);
  EXPECT_GT(span("b1.h1.q1.kv256.d64.f16.kve5m2"), 1e3);  // few scales in all
}

TEST(CacheInputs, ElementsMakeUpForScalesAsFarAsTheTypeReaches) {
  for (const char* text : {kE4m3Problem, kE5m2Problem}) {
    const Problem problem = *ParseProblem(text);
    const Tensors inputs = MakeInputs(problem, Distribution::kNormal, 1);
    for (int64_t sequence = 0; sequence < problem.batch; ++sequence) {
      for (int64_t head = 0; head < problem.heads_kv; ++head) {
        const double deviation = Deviation(ValuesOf(problem, inputs, sequence, head));
        EXPECT_LT(deviation, 1.3);
        EXPECT_GT(deviation, problem.kv_dtype == v1::DTYPE_E4M3 ? 0x1p-9 : 0.2);
      }
    }
  }
}

// What a row's largest logit is, over all rows of the problem.
std::pair<double, double> LargestLogits(const Problem& problem, Distribution distribution) {
  const Tensors inputs = MakeInputs(problem, distribution, 1);
  const RowMap map(problem, SequenceLengths(problem), {});
  double least = INFINITY, most = 0;
  for (int64_t row = 0; row < problem.batch * problem.heads_q * problem.seq_q; ++row) {
    const RowMap::QueryRow at = map.At(row);
    const int64_t head = at.head / (problem.heads_q / problem.heads_kv);
    double largest = 0;
    for (int64_t key = 0; key < problem.seq_kv; ++key) {
      double logit = 0;
      for (int64_t d = 0; d < problem.head_dim; ++d) {
        logit += ToFloat(problem.dtype, inputs.q[map.Query(at) + d]) *
                 Float8ToFloat(problem.kv_dtype, inputs.k_codes[map.Key(at.sequence, head, key) + d]);
      }
      logit *= inputs.k_scales[at.sequence * problem.heads_kv + head] / std::sqrt(problem.head_dim);
      largest = std::max(largest, std::abs(logit));
    }
    least = std::min(least, largest);
    most = std::max(most, largest);
  }
  return {least, most};
}

TEST(CacheInputs, LogitsAreAsLargeAsThoseOf16BitsWhateverTheScale) {
  for (const char* text : {"b4.h8.kvh4.q4.kv256.d64.f16.kve4m3", "b4.h8.kvh4.q4.kv256.d64.bf16.kve5m2"}) {
    const Problem problem = *ParseProblem(text);
    const auto [normal_least, normal_most] = LargestLogits(problem, Distribution::kNormal);
    EXPECT_GT(normal_least, 1);
    EXPECT_LT(normal_most, 8);
    const auto [large_least, large_most] = LargestLogits(problem, Distribution::kLargeLogits);
    EXPECT_GT(large_least, 11);  // where exp overflows fp16
    EXPECT_LT(large_most, 88);   // and fp32
    const auto [dominant_least, dominant_most] = LargestLogits(problem, Distribution::kDominantKey);
    EXPECT_GT(dominant_least, 6);
    EXPECT_LT(dominant_most, 300);
  }
}

TEST(CacheInputs, WhatNoKernelMayReadIsNaN) {
  for (const char* text : {"b3.h4.kvh2.q3.kv20.d32.f16.kve4m3.page8", "b3.h4.kvh2.q3.kv20.d32.f16.kve5m2.page8"}) {
    const Problem problem = *ParseProblem(text);
    const Tensors inputs = MakeInputs(problem, Distribution::kNormal, 1);
    const auto nan = [&](uint8_t bits) { return std::isnan(Float8ToFloat(problem.kv_dtype, bits)); };
    const int64_t read = SequenceLengths(problem).total_kv() * problem.heads_kv * problem.head_dim;
    const int64_t forbidden = std::count_if(inputs.k_codes.begin(), inputs.k_codes.end(), nan);
    EXPECT_EQ(static_cast<int64_t>(inputs.k_codes.size()) - forbidden, read);
    EXPECT_EQ(std::count_if(inputs.v_codes.begin(), inputs.v_codes.end(), nan), forbidden);
    EXPECT_GE(forbidden, 8 * problem.heads_kv * problem.head_dim);  // a page that is nobody's
  }
}

}  // namespace
}  // namespace attune::verify
