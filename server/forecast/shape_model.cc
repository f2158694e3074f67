#include "server/forecast/shape_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/search/field.h"

namespace attune::forecast {
namespace {

constexpr size_t kMostRowsOfShape = 120;
// Of 64, which of several near variants is expected to be the fastest was half a matter of the draws.
constexpr int kTrees = 160;

double Magnitude(double value) { return std::copysign(std::log2(1 + std::abs(value)), value); }

}  // namespace

std::vector<double> ShapeModel::Row(const std::vector<double>& features, const Problem& problem,
                                    Schedules& schedules) const {
  std::vector<double> row;
  const auto add = [&](const std::vector<double>& columns) {
    for (double column : columns) row.push_back(column == search::kMissing ? -1 : Magnitude(column));
  };
  add(features);
  add(schedules.Columns(names_, features));
  for (auto type : {problem.dtype, problem.kv_dtype}) row.push_back(static_cast<double>(type));
  row.push_back(static_cast<double>(problem.head_dim));
  row.push_back(static_cast<double>(problem.mask));
  return row;
}

std::vector<size_t> ShapeModel::LearnedFrom(size_t variants) {
  std::vector<size_t> learned;
  const size_t head = std::min(variants, kMostRowsOfShape / 2);
  const size_t step = std::max<size_t>(1, (variants - head) / (kMostRowsOfShape - kMostRowsOfShape / 2));
  for (size_t i = 0; i < variants; i += i < head ? 1 : step) learned.push_back(i);
  return learned;
}

ShapeModel ShapeModel::Fit(std::vector<std::string> names, const v1::Device& device,
                           const std::vector<TunedShape>& shapes) {
  ShapeModel model(std::move(names), device);
  search::TrainingRows rows;
  for (const TunedShape& shape : shapes) {
    if (shape.features.empty()) continue;
    const size_t tenth = std::min(shape.us.size(), std::max<size_t>(5, shape.us.size() / 10));
    const double level = std::log(shape.us[tenth / 2]);
    Schedules schedules(shape.problem, model.device_);
    for (const auto& [variant, features] : shape.features) {
      rows.Add(model.Row(features, shape.problem, schedules), std::log(shape.us[variant]) - level,
               1 / static_cast<double>(shape.features.size()));
    }
  }
  model.trees_ = search::TreeEnsemble::Fit(rows, {.trees = kTrees, .min_leaf = 2, .seed = 1});
  return model;
}

std::vector<double> ShapeModel::Expect(const Problem& problem, const std::vector<std::vector<double>>& variants) const {
  Schedules schedules(problem, device_);
  std::vector<double> expected;
  expected.reserve(variants.size());
  for (const std::vector<double>& features : variants) {
    expected.push_back(trees_.Predict(Row(features, problem, schedules)).mean);
  }
  return expected;
}

}  // namespace attune::forecast
