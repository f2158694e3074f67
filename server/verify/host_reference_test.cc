#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "server/verify/float8.h"
#include "server/verify/half.h"
#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<uint16_t> Halves(const std::vector<float>& values) {
  std::vector<uint16_t> halves;
  halves.reserve(values.size());
  for (float value : values) halves.push_back(FloatToF16(value));
  return halves;
}

Problem Text(const char* text) { return *ParseProblem(text); }

Lengths SequenceLengthsOf(const Tensors& inputs, const Problem& problem) {
  Lengths lengths = SequenceLengths(problem);
  for (int64_t b = 0; b < problem.batch; ++b) {
    if (!inputs.q_bounds.empty()) lengths.q[b] = inputs.q_bounds[b + 1] - inputs.q_bounds[b];
    if (!inputs.kv_bounds.empty()) lengths.kv[b] = inputs.kv_bounds[b + 1] - inputs.kv_bounds[b];
    if (!inputs.kv_lengths.empty()) lengths.kv[b] = inputs.kv_lengths[b];
  }
  return lengths;
}

// Rows that are no sequence's are 0.
std::vector<uint16_t> Widened(const Problem& problem, const RowMap& map, const std::vector<uint8_t>& codes,
                              const std::vector<float>& scales) {
  std::vector<uint16_t> wide(codes.size());
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t h = 0; h < problem.heads_kv; ++h) {
      for (int64_t row = 0; row < map.lengths().kv[b]; ++row) {
        for (int64_t i = map.Key(b, h, row), end = i + problem.head_dim; i < end; ++i) {
          wide[i] = FloatToBf16(Float8ToFloat(problem.kv_dtype, codes[i]) * scales[b * problem.heads_kv + h]);
        }
      }
    }
  }
  return wide;
}

TEST(HostReference, OneKeyGivesItsValue) {
  const HostResult result = HostReference(Text("b1.h1.q1.d2.f16"), {Halves({1, 2}), Halves({3, 4}), Halves({5, -6})});
  EXPECT_EQ(result.o, (std::vector<float>{5, -6}));
  EXPECT_NEAR(result.lse[0], 11 / std::sqrt(2.0), 1e-6);
}

TEST(HostReference, WeighsTwoKeysBySoftmax) {
  const HostResult result =
      HostReference(Text("b1.h1.q1.kv2.d1.f16"), {Halves({1}), Halves({0, std::log(3.0f)}), Halves({0, 4})});
  const double weight = std::exp(F16ToFloat(FloatToF16(std::log(3.0f))));
  EXPECT_NEAR(result.o[0], 4 * weight / (1 + weight), 1e-6);
  EXPECT_NEAR(result.lse[0], std::log(1 + weight), 1e-6);
}

TEST(HostReference, CausalAlignmentsDiffer) {
  const std::vector<uint16_t> q = Halves({0, 0}), k = Halves({0, 0, 0}), v = Halves({3, 6, 9});
  EXPECT_EQ(HostReference(Text("b1.h1.q2.kv3.d1.f16.causal"), {q, k, v}).o, (std::vector<float>{3, 4.5}));
  EXPECT_EQ(HostReference(Text("b1.h1.q2.kv3.d1.f16.causal-br"), {q, k, v}).o, (std::vector<float>{4.5, 6}));
  EXPECT_EQ(HostReference(Text("b1.h1.q2.kv3.d1.f16.window1"), {q, k, v}).o, (std::vector<float>{6, 9}));
}

TEST(HostReference, ARowThatSeesNoKeyIsZeroWithLogSumExpMinusInfinity) {
  const HostResult result =
      HostReference(Text("b1.h1.q2.kv1.d1.f16.causal-br"), {Halves({1, 1}), Halves({1}), Halves({7})});
  EXPECT_EQ(result.o, (std::vector<float>{0, 7}));
  EXPECT_EQ(result.lse[0], -kInf);
  EXPECT_EQ(result.lse[1], 1);
}

TEST(HostReference, SoftcapBoundsTheLogits) {
  const HostResult result = HostReference(Text("b1.h1.q1.d1.f16.softcap2"), {Halves({10}), Halves({10}), Halves({1})});
  EXPECT_NEAR(result.lse[0], 2, 1e-6);
}

TEST(HostReference, QueryHeadsShareTheirGroupsKeys) {
  const HostResult result =
      HostReference(Text("b1.h4.kvh2.q1.d1.f16"), {Halves({1, 1, 1, 1}), Halves({1, 1}), Halves({5, 8})});
  EXPECT_EQ(result.o, (std::vector<float>{5, 5, 8, 8}));
}

TEST(HostReference, ASinkTakesWeightAndHasNoValue) {
  Tensors inputs = {Halves({1, 1}), Halves({2, 2}), Halves({6, 6})};
  inputs.sinks = {2, -kInf};
  const HostResult result = HostReference(Text("b1.h2.q1.d1.f16.sinks"), inputs);
  EXPECT_EQ(result.o, (std::vector<float>{3, 6}));
  EXPECT_NEAR(result.lse[0], 2 + std::log(2.0), 1e-6);
  EXPECT_EQ(result.lse[1], 2);
}

TEST(HostReference, ASinkIsAllThatARowWithoutKeysHas) {
  Tensors inputs = {Halves({1, 1}), Halves({1}), Halves({7})};
  inputs.sinks = {-100};
  const HostResult result = HostReference(Text("b1.h1.q2.kv1.d1.f16.causal-br.sinks"), inputs);
  EXPECT_EQ(result.o, (std::vector<float>{0, 7}));
  EXPECT_EQ(result.lse, (std::vector<float>{-100, 1}));
}

TEST(HostReference, ARowWithANaNIsNaN) {
  const HostResult result =
      HostReference(Text("b1.h1.q2.kv2.d1.f16"), {Halves({std::nanf(""), 0}), Halves({1, 1}), Halves({3, 5})});
  EXPECT_TRUE(std::isnan(result.o[0]));
  EXPECT_TRUE(std::isnan(result.lse[0]));
  EXPECT_EQ(result.o[1], 4);
  EXPECT_NEAR(result.lse[1], std::log(2.0), 1e-6);
}

TEST(HostReference, ASinkOfNaNOrInfinityMakesItsRowsNaNWithAndWithoutKeys) {
  for (const float sink : {std::nanf(""), kInf}) {
    Tensors inputs = {Halves({1, 1}), Halves({1}), Halves({7})};
    inputs.sinks = {sink};
    const HostResult result = HostReference(Text("b1.h1.q2.kv1.d1.f16.causal-br.sinks"), inputs);
    for (int row = 0; row < 2; ++row) {
      EXPECT_TRUE(std::isnan(result.o[row])) << "row " << row << ", sink " << sink;
      EXPECT_TRUE(std::isnan(result.lse[row])) << "row " << row << ", sink " << sink;
    }
  }
}

TEST(HostReference, ARowWhoseLogitsAreAllMinusInfinityIsAsOneThatSeesNoKey) {
  const HostResult result =
      HostReference(Text("b1.h1.q1.kv2.d1.f16"), {Halves({1}), Halves({-kInf, -kInf}), Halves({3, 5})});
  EXPECT_EQ(result.o[0], 0);
  EXPECT_EQ(result.lse[0], -kInf);
}

TEST(HostReference, ASinkIsNotCapped) {
  Tensors inputs = {Halves({10}), Halves({10}), Halves({1})};
  inputs.sinks = {5};
  EXPECT_NEAR(HostReference(Text("b1.h1.q1.d1.f16.softcap2.sinks"), inputs).lse[0], std::log(std::exp(2) + std::exp(5)),
              1e-6);
}

// The same keys and values in 16 bits. Exact: the numbers of 8-bit types have few bits, and the scales are powers of
// two.
TEST(HostReference, AnElementOf8BitsStandsForItselfTimesItsHeadsScale) {
  for (const std::string kv_dtype : {"e4m3", "e5m2"}) {
    for (const std::string rest : {"", ".causal-br.bshd.lse", ".varlen.lse", ".page3.lse", ".varlen.page3.sinks"}) {
      const Problem scaled = Text(("b3.h4.kvh2.q5.kv7.d8.bf16.kv" + kv_dtype + rest).c_str());
      const Problem plain = Text(("b3.h4.kvh2.q5.kv7.d8.bf16" + rest).c_str());
      Tensors inputs = MakeInputs(scaled, Distribution::kOffsetMean, 1);
      for (size_t i = 0; i < inputs.k_scales.size(); ++i) {
        inputs.k_scales[i] = std::ldexp(0.5f, static_cast<int>(i % 3));
        inputs.v_scales[i] = std::ldexp(1.0f, -static_cast<int>(i % 5));
      }
      Tensors wide = inputs;
      const RowMap map(scaled, SequenceLengthsOf(inputs, scaled), inputs.page_table);
      wide.k = Widened(scaled, map, inputs.k_codes, inputs.k_scales);
      wide.v = Widened(scaled, map, inputs.v_codes, inputs.v_scales);
      const HostResult result = HostReference(scaled, inputs);
      const HostResult expected = HostReference(plain, wide);
      EXPECT_EQ(result.o, expected.o) << kv_dtype << rest;
      EXPECT_EQ(result.lse, expected.lse) << kv_dtype << rest;
    }
  }
}

TEST(HostReference, ANaNAmongElementsOf8BitsIsNotHidden) {
  for (const char* kv_dtype : {"e4m3", "e5m2"}) {
    const Problem problem = Text((std::string("b1.h2.q1.kv2.d1.f16.kv") + kv_dtype).c_str());
    Tensors inputs = {Halves({1, 1})};
    inputs.k_codes = {0x38, 0x38, kFloat8NaN, 0x38};
    inputs.v_codes = {0x38, 0x38, 0x38, 0x38};
    inputs.k_scales = inputs.v_scales = {1, 1};
    const HostResult result = HostReference(problem, inputs);
    EXPECT_FALSE(std::isnan(result.o[0]));
    EXPECT_TRUE(std::isnan(result.o[1]));
  }
}

// Rows [first, end) of a tensor that has `row` elements a token.
template <typename T>
std::vector<T> Tokens(const std::vector<T>& from, int64_t first, int64_t end, int64_t row) {
  return {from.begin() + first * row, from.begin() + end * row};
}

TEST(HostReference, EverySequenceIsAProblemOfItsOwn) {
  for (const char* mask : {"", ".causal", ".causal-br", ".window3.softcap2.sinks"}) {
    const Problem problem = Text(("b4.h4.kvh2.q9.kv11.d8.f16.varlen" + std::string(mask)).c_str());
    for (Distribution distribution : Distributions()) {
      const Tensors inputs = MakeInputs(problem, distribution, 1);
      const HostResult result = HostReference(problem, inputs);
      const int64_t total_q = inputs.q_bounds.back();
      for (int64_t b = 0; b < problem.batch; ++b) {
        const int64_t q_first = inputs.q_bounds[b], q_end = inputs.q_bounds[b + 1];
        const int64_t kv_first = inputs.kv_bounds[b], kv_end = inputs.kv_bounds[b + 1];
        if (q_first == q_end || kv_first == kv_end) continue;
        Problem alone = problem;
        alone.batch = 1;
        alone.varlen = false;
        alone.seq_q = q_end - q_first;
        alone.seq_kv = kv_end - kv_first;
        const HostResult expected =
            HostReference(alone, {Tokens(inputs.q, q_first, q_end, 4 * 8), Tokens(inputs.k, kv_first, kv_end, 2 * 8),
                                  Tokens(inputs.v, kv_first, kv_end, 2 * 8), inputs.sinks});
        EXPECT_EQ(Tokens(result.o, q_first, q_end, 4 * 8), expected.o) << mask << ", sequence " << b;
        for (int64_t h = 0; h < 4; ++h) {
          EXPECT_EQ(Tokens(result.lse, h * total_q + q_first, h * total_q + q_end, 1),
                    Tokens(expected.lse, h * alone.seq_q, (h + 1) * alone.seq_q, 1));
        }
      }
    }
  }
}

TEST(HostReference, ASequenceWithoutKeysIsZero) {
  const Problem problem = Text("b4.h1.q4.d8.f16.varlen");
  const Tensors inputs = MakeInputs(problem, Distribution::kLargeLogits, 1);
  ASSERT_EQ(inputs.kv_bounds[3], inputs.kv_bounds[4]);
  const HostResult result = HostReference(problem, inputs);
  for (int64_t row = inputs.q_bounds[3]; row < inputs.q_bounds[4]; ++row) {
    EXPECT_EQ(result.lse[row], -kInf);
    EXPECT_EQ(Tokens(result.o, row, row + 1, 8), std::vector<float>(8, 0.0f));
  }
}

// The rows that a page table leads to, one behind the other.
std::vector<uint16_t> Gathered(const Problem& problem, const Tensors& inputs, const std::vector<uint16_t>& cache) {
  const int64_t row = problem.heads_kv * problem.head_dim;
  const int64_t pages = (problem.seq_kv + problem.page_size - 1) / problem.page_size;
  std::vector<uint16_t> gathered;
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t j = 0; j < inputs.kv_lengths[b]; ++j) {
      const int64_t page = inputs.page_table[b * pages + j / problem.page_size];
      const auto from = cache.begin() + (page * problem.page_size + j % problem.page_size) * row;
      gathered.insert(gathered.end(), from, from + row);
    }
  }
  return gathered;
}

TEST(HostReference, PagesHoldTheSameNumbers) {
  const Problem paged = Text("b4.h4.kvh2.q9.kv11.d8.f16.causal-br.varlen.page3");
  Problem together = paged;
  together.page_size = 0;
  for (Distribution distribution : Distributions()) {
    const Tensors inputs = MakeInputs(paged, distribution, 1);
    Tensors gathered = inputs;
    gathered.k = Gathered(paged, inputs, inputs.k);
    gathered.v = Gathered(paged, inputs, inputs.v);
    gathered.kv_bounds = {0};
    for (int32_t length : inputs.kv_lengths) gathered.kv_bounds.push_back(gathered.kv_bounds.back() + length);
    gathered.kv_lengths.clear();
    gathered.page_table.clear();
    const HostResult expected = HostReference(together, gathered);
    const HostResult result = HostReference(paged, inputs);
    EXPECT_EQ(result.o, expected.o);
    EXPECT_EQ(result.lse, expected.lse);
  }
}

// [batch, heads, rows, 8] to [batch, rows, heads, 8].
template <typename T>
std::vector<T> Reordered(const std::vector<T>& from, int64_t batch, int64_t heads, int64_t rows) {
  std::vector<T> to(from.size());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t s = 0; s < rows; ++s) {
        std::copy_n(&from[((b * heads + h) * rows + s) * 8], 8, &to[((b * rows + s) * heads + h) * 8]);
      }
    }
  }
  return to;
}

TEST(HostReference, PagesAloneLeaveQueriesInTheirLayout) {
  const Problem bhsd = Text("b3.h2.q5.kv11.d8.f16.causal-br.page4");
  Problem bshd = bhsd;
  bshd.layout = v1::LAYOUT_BSHD;
  const Tensors inputs = MakeInputs(bhsd, Distribution::kOffsetMean, 1);
  Tensors reordered = inputs;
  reordered.q = Reordered(inputs.q, 3, 2, 5);
  EXPECT_EQ(HostReference(bshd, reordered).o, Reordered(HostReference(bhsd, inputs).o, 3, 2, 5));
}

TEST(HostReference, LayoutsHoldTheSameNumbers) {
  const Problem bhsd = Text("b2.h4.kvh2.q5.kv7.d8.f16.causal-br");
  Problem bshd = bhsd;
  bshd.layout = v1::LAYOUT_BSHD;
  const Tensors inputs = MakeInputs(bhsd, Distribution::kNormal, 1);
  const HostResult expected = HostReference(bhsd, inputs);
  const HostResult result =
      HostReference(bshd, {Reordered(inputs.q, 2, 4, 5), Reordered(inputs.k, 2, 2, 7), Reordered(inputs.v, 2, 2, 7)});
  EXPECT_EQ(result.o, Reordered(expected.o, 2, 4, 5));
  EXPECT_EQ(result.lse, expected.lse);
}

}  // namespace
}  // namespace attune::verify
