#include "server/forecast/shape_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <system_error>
#include <thread>
#include <utility>

#include "server/search/field.h"

namespace attune::forecast {
namespace {

// Of 64, which of several near variants is expected to be the fastest was half a matter of the draws.
constexpr int kTrees = 160;
constexpr int kParts = 8;  // that are grown side by side

// The first half of `unexplained`, the second of `rows`.
std::vector<search::TreeEnsemble> PartsOf(const search::TrainingRows& unexplained, const search::TrainingRows& rows) {
  std::vector<search::TreeEnsemble> parts(kParts);
  std::atomic<int> next = 0;
  const auto grow = [&] {
    for (int part = next++; part < kParts; part = next++) {
      parts[static_cast<size_t>(part)] =
          search::TreeEnsemble::Fit(part < kParts / 2 ? unexplained : rows,
                                    {.trees = kTrees / kParts, .min_leaf = 2, .seed = static_cast<uint64_t>(part) + 1});
    }
  };
  std::vector<std::jthread> helpers;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency() / 2, 1U, 1U * kParts);
  try {
    while (helpers.size() + 1 < threads) helpers.emplace_back(grow);
  } catch (const std::system_error&) {
    // As many as there may be.
  }
  grow();
  helpers.clear();
  return parts;
}

double Magnitude(double value) { return std::copysign(std::log2(1 + std::abs(value)), value); }

}  // namespace

ShapeModel::Row ShapeModel::RowOf(const std::vector<double>& features, const Problem& problem,
                                  Schedules& schedules) const {
  Row row;
  const auto add = [&](const std::vector<double>& columns) {
    for (double column : columns) row.columns.push_back(column == search::kMissing ? -1 : Magnitude(column));
  };
  const std::vector<double> schedule = schedules.Columns(names_, features);
  row.idle = std::log(Schedules::IdleOf(schedule));
  add(features);
  add(schedule);
  for (auto type : {problem.dtype, problem.kv_dtype}) row.columns.push_back(static_cast<double>(type));
  row.columns.push_back(static_cast<double>(problem.head_dim));
  row.columns.push_back(static_cast<double>(problem.mask));
  return row;
}

ShapeModel ShapeModel::Fit(std::vector<std::string> names, const v1::Device& device,
                           const std::vector<TunedShape>& shapes) {
  ShapeModel model(std::move(names), device);
  search::TrainingRows rows;
  std::vector<double> idle;
  for (const TunedShape& shape : shapes) {
    Schedules schedules(shape.problem, model.device_);
    for (size_t i = 0; i < shape.us.size(); ++i) {
      const Row row = model.RowOf(shape.features[i], shape.problem, schedules);
      rows.Add(row.columns, std::log(shape.us[i] / shape.level_us), 1 / static_cast<double>(shape.us.size()));
      idle.push_back(row.idle);
    }
  }
  if (rows.size() == 0) return model;
  search::TrainingRows unexplained = rows;
  for (size_t i = 0; i < idle.size(); ++i) unexplained.targets[i] -= idle[i];
  model.parts_ = PartsOf(unexplained, rows);
  return model;
}

std::vector<double> ShapeModel::Expect(const Problem& problem, const std::vector<std::vector<double>>& variants) const {
  Schedules schedules(problem, device_);
  if (parts_.empty()) return std::vector<double>(variants.size(), 0);
  std::vector<double> expected;
  expected.reserve(variants.size());
  for (const std::vector<double>& features : variants) {
    const Row row = RowOf(features, problem, schedules);
    double sum = 0;
    for (const search::TreeEnsemble& part : parts_) sum += part.Predict(row.columns).mean;
    expected.push_back(sum / kParts + row.idle / 2);
  }
  return expected;
}

}  // namespace attune::forecast
