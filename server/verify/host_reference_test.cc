#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "server/verify/half.h"
#include "server/verify/tensor_shape.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<uint16_t> Halves(const std::vector<float>& values) {
  std::vector<uint16_t> halves;
  halves.reserve(values.size());
  for (float value : values) halves.push_back(FloatToF16(value));
  return halves;
}

Problem Text(const char* text) { return *ParseProblem(text); }

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
  EXPECT_EQ(result.lse[0], -kInfinity);
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

TEST(HostReference, LayoutsHoldTheSameNumbers) {
  const Problem bhsd = Text("b2.h4.kvh2.q5.kv7.d8.f16.causal-br");
  Problem bshd = bhsd;
  bshd.layout = v1::LAYOUT_BSHD;
  const Tensors inputs = MakeInputs(bhsd, Distribution::kNormal, 1);
  const auto reorder = [](const auto& from, const TensorShape& shape) {
    TensorShape to_shape = shape;
    to_shape.layout = v1::LAYOUT_BSHD;
    auto to = from;
    for (int64_t b = 0; b < shape.batch; ++b) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        for (int64_t s = 0; s < shape.seq; ++s) {
          std::copy_n(&from[shape.Row(b, h, s)], shape.dim, &to[to_shape.Row(b, h, s)]);
        }
      }
    }
    return to;
  };
  const HostResult expected = HostReference(bhsd, inputs);
  const HostResult result = HostReference(bshd, {reorder(inputs.q, QueryShape(bhsd)), reorder(inputs.k, KeyShape(bhsd)),
                                                 reorder(inputs.v, KeyShape(bhsd))});
  EXPECT_EQ(result.o, reorder(expected.o, QueryShape(bhsd)));
  EXPECT_EQ(result.lse, expected.lse);
}

}  // namespace
}  // namespace attune::verify
