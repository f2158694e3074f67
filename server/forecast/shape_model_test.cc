#include "server/forecast/shape_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "server/base/device_profile.h"
#include "server/forecast/relevance.h"

namespace attune::forecast {
namespace {

const std::vector<std::string>& Names() {
  static const auto& names = *new std::vector<std::string>{"BLOCK_M", "BLOCK_N", "resident", "warps"};
  return names;
}

// Every BLOCK_M, and what each takes where an SM's steps are all that counts.
std::vector<std::vector<double>> Variants() {
  std::vector<std::vector<double>> variants;
  for (double block_m : {16, 32, 48, 64, 80, 96, 112, 128}) {
    for (double block_n : {32, 64, 128}) variants.push_back({block_m, block_n, 1, 4});
  }
  return variants;
}

double TimeOf(const Problem& problem, const std::vector<double>& variant) {
  Schedules schedules(problem, 132);
  const Schedule& schedule = schedules.Of(
      {.block_m = static_cast<int64_t>(variant[0]), .block_n = static_cast<int64_t>(variant[1]), .resident = 1});
  return schedule.busiest_sm * (20 + variant[0] * variant[1] / 64);
}

TunedShape ShapeOf(const std::string& text) {
  TunedShape shape;
  shape.problem = *ParseProblem(text);
  std::vector<std::vector<double>> variants = Variants();
  std::stable_sort(variants.begin(), variants.end(),
                   [&](const auto& a, const auto& b) { return TimeOf(shape.problem, a) < TimeOf(shape.problem, b); });
  for (size_t i = 0; i < variants.size(); ++i) {
    shape.us.push_back(TimeOf(shape.problem, variants[i]));
    shape.features.push_back(variants[i]);
  }
  shape.level_us = shape.us[2];
  return shape;
}

// How much slower than the best of a shape its model's choice is.
double LossAt(const ShapeModel& model, const std::string& text) {
  const Problem problem = *ParseProblem(text);
  const std::vector<std::vector<double>> variants = Variants();
  const std::vector<double> expected = model.ExpectUntried(problem, variants);
  const auto chosen = static_cast<size_t>(std::min_element(expected.begin(), expected.end()) - expected.begin());
  double best = TimeOf(problem, variants[0]);
  for (const std::vector<double>& variant : variants) best = std::min(best, TimeOf(problem, variant));
  return TimeOf(problem, variants[chosen]) / best - 1;
}

TEST(ShapeModel, ForeseesWhereTheLastWaveIsEmpty) {
  std::vector<TunedShape> shapes;
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    const int heads = std::uniform_int_distribution(4, 64)(random);
    const int length = std::uniform_int_distribution(100, 2000)(random);
    shapes.push_back(ShapeOf(absl::StrCat("b1.h", heads, ".q", length, ".d64.f16")));
  }
  const ShapeModel model = ShapeModel::Fit(Names(), *DeviceProfile("h200"), shapes);
  std::vector<double> losses;
  for (const char* text : {"b1.h9.q500.d64.f16", "b1.h17.q900.d64.f16", "b1.h33.q250.d64.f16", "b1.h48.q700.d64.f16",
                           "b1.h5.q1900.d64.f16", "b1.h61.q333.d64.f16", "b1.h12.q777.d64.f16"}) {
    losses.push_back(LossAt(model, text));
  }
  std::sort(losses.begin(), losses.end());
  EXPECT_LT(losses[3], 0.03);
  EXPECT_LT(losses.back(), 0.25);
}

// All that it has learned from have items for many waves. Of this one blocks of 128 rows are 140 items on 132 SMs.
TEST(ShapeModel, ExpectsTwoWavesWhereItHasSeenNone) {
  std::vector<TunedShape> shapes;
  for (const char* text : {"b64.h20.q800.d64.f16", "b50.h32.q900.d64.f16", "b99.h16.q700.d64.f16"}) {
    shapes.push_back(ShapeOf(text));
  }
  const ShapeModel model = ShapeModel::Fit(Names(), *DeviceProfile("h200"), shapes);
  EXPECT_LT(LossAt(model, "b64.h20.q817.d64.f16"), 0.05);
  EXPECT_LT(LossAt(model, "b1.h20.q817.d64.f16"), 0.1);
}

TEST(ShapeModel, OfNothingNothingIsExpected) {
  const ShapeModel model = ShapeModel::Fit(Names(), *DeviceProfile("h200"), {});
  EXPECT_THAT(model.Expect(*ParseProblem("b1.h1.q64.d64.f16"), {{64, 64, 1, 4}}), testing::ElementsAre(0));
  EXPECT_THAT(model.ExpectUntried(*ParseProblem("b1.h1.q64.d64.f16"), {{64, 64, 1, 4}}), testing::ElementsAre(0));
}

TEST(IsLike, ComparesWhatOtherCodeComputes) {
  const auto like = [](const std::string& a, const std::string& b) {
    return IsLike(*ParseProblem(a), *ParseProblem(b));
  };
  EXPECT_TRUE(like("b1.h8.q512.d64.f16", "b2.h8.q512.d64.bf16"));
  EXPECT_FALSE(like("b1.h8.q512.d64.f16", "b1.h8.q512.d128.f16"));
  EXPECT_FALSE(like("b1.h8.q512.d64.f16", "b1.h8.q512.d64.f16.causal"));
  EXPECT_TRUE(like("b1.h8.q1.kv512.d64.f16", "b1.h8.q1.kv512.d64.f16.causal-br")) << "a single row sees all";
  EXPECT_TRUE(like("b1.h8.q1.kv1024.d64.f16", "b1.h8.q1.kv99999.d64.f16.window1000")) << "by the keys that it sees";
  EXPECT_FALSE(like("b1.h8.q1.kv512.d64.f16", "b1.h8.q1.kv512.d64.f16.kve4m3"));
  EXPECT_TRUE(like("b1.h8.q64.kv64.d64.f16", "b1.h8.q512.kv512.d64.f16")) << "six octaves";
  EXPECT_FALSE(like("b1.h8.q64.kv64.d64.f16", "b1.h8.q513.kv513.d64.f16"));
}

}  // namespace
}  // namespace attune::forecast
