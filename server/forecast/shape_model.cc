#include "server/forecast/shape_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "server/search/field.h"

namespace attune::forecast {
namespace {

constexpr size_t kMostRowsOfShape = 120;

double Magnitude(double value) { return std::copysign(std::log2(1 + std::abs(value)), value); }

// The fastest half of kMostRowsOfShape one by one, where it matters, then every so many.
std::vector<size_t> ThinnedShape(const std::vector<size_t>& fastest_first) {
  std::vector<size_t> kept;
  const size_t head = std::min(fastest_first.size(), kMostRowsOfShape / 2);
  const size_t step = std::max<size_t>(1, (fastest_first.size() - head) / (kMostRowsOfShape - kMostRowsOfShape / 2));
  for (size_t i = 0; i < fastest_first.size(); i += i < head ? 1 : step) kept.push_back(fastest_first[i]);
  return kept;
}

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
    if (shape.rows.empty()) continue;
    std::vector<size_t> fastest_first(shape.rows.size());
    std::iota(fastest_first.begin(), fastest_first.end(), size_t{0});
    std::stable_sort(fastest_first.begin(), fastest_first.end(),
                     [&](size_t a, size_t b) { return shape.rows[a].us < shape.rows[b].us; });
    const size_t tenth = std::min(fastest_first.size(), std::max<size_t>(5, fastest_first.size() / 10));
    const double level = std::log(shape.rows[fastest_first[tenth / 2]].us);
    const std::vector<size_t> kept = ThinnedShape(fastest_first);
    Schedules schedules(shape.problem, model.device_);
    for (size_t i : kept) {
      const TunedShape::Row& row = shape.rows[i];
      rows.Add(model.Row(row.features, shape.problem, schedules), std::log(row.us) - level,
               1 / static_cast<double>(kept.size()));
    }
  }
  model.trees_ = search::TreeEnsemble::Fit(rows, {.trees = 64, .min_leaf = 2, .seed = 1});
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
