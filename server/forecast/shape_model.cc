#include "server/forecast/shape_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/search/field.h"

namespace attune::forecast {
namespace {

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

ShapeModel ShapeModel::Fit(std::vector<std::string> names, const v1::Device& device,
                           const std::vector<TunedShape>& shapes) {
  ShapeModel model(std::move(names), device);
  search::TrainingRows rows;
  for (const TunedShape& shape : shapes) {
    Schedules schedules(shape.problem, model.device_);
    for (size_t i = 0; i < shape.us.size(); ++i) {
      rows.Add(model.Row(shape.features[i], shape.problem, schedules), std::log(shape.us[i] / shape.level_us),
               1 / static_cast<double>(shape.us.size()));
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
