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

// Of 64 trees, which of several near variants is expected to be the fastest was half a matter of the draws.
constexpr int kTreesOfPart = 20;
constexpr int kWholeParts = 8;
constexpr int kUnexplainedParts = 4;

struct Part {
  const search::TrainingRows& rows;
  uint64_t seed;
  search::TreeEnsemble& trees;
};

// Side by side.
void Grow(const std::vector<Part>& parts) {
  std::atomic<size_t> next = 0;
  const auto grow = [&] {
    for (size_t i = next++; i < parts.size(); i = next++) {
      parts[i].trees =
          search::TreeEnsemble::Fit(parts[i].rows, {.trees = kTreesOfPart, .min_leaf = 2, .seed = parts[i].seed});
    }
  };
  std::vector<std::jthread> helpers;
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, parts.size());
  try {
    while (helpers.size() + 1 < threads) helpers.emplace_back(grow);
  } catch (const std::system_error&) {
    // As many as there may be.
  }
  grow();
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
  model.whole_.resize(kWholeParts);
  model.unexplained_.resize(kUnexplainedParts);
  std::vector<Part> parts;
  for (search::TreeEnsemble& trees : model.whole_) parts.push_back({rows, parts.size() + 1, trees});
  for (search::TreeEnsemble& trees : model.unexplained_) parts.push_back({unexplained, parts.size() + 1, trees});
  Grow(parts);
  return model;
}

double ShapeModel::MeanOf(const std::vector<search::TreeEnsemble>& parts, const Row& row) {
  double sum = 0;
  for (const search::TreeEnsemble& part : parts) sum += part.Predict(row.columns).mean;
  return sum / static_cast<double>(std::max<size_t>(parts.size(), 1));
}

std::vector<double> ShapeModel::Expect(const Problem& problem, const std::vector<std::vector<double>>& variants) const {
  Schedules schedules(problem, device_);
  std::vector<double> expected;
  expected.reserve(variants.size());
  for (const std::vector<double>& features : variants) {
    expected.push_back(MeanOf(whole_, RowOf(features, problem, schedules)));
  }
  return expected;
}

std::vector<double> ShapeModel::ExpectUntried(const Problem& problem,
                                              const std::vector<std::vector<double>>& variants) const {
  if (whole_.empty()) return std::vector<double>(variants.size(), 0);
  Schedules schedules(problem, device_);
  std::vector<double> expected;
  expected.reserve(variants.size());
  for (const std::vector<double>& features : variants) {
    const Row row = RowOf(features, problem, schedules);
    expected.push_back((MeanOf(whole_, row) + MeanOf(unexplained_, row) + row.idle) / 2);
  }
  return expected;
}

}  // namespace attune::forecast
