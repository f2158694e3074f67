#include "client/replay/shape_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/search/field.h"

namespace attune::replay {
namespace {

constexpr size_t kMostRows = 200;  // of a problem

double Logarithm(double value) { return std::copysign(std::log2(1 + std::abs(value)), value); }

double CeilRatio(double a, double b) { return b > 0 ? std::ceil(a / b) * b / a : 1; }

// The fastest half of kMostRows one by one, where it matters, then every so many.
std::vector<size_t> Thinned(const std::vector<size_t>& fastest_first) {
  std::vector<size_t> kept;
  const size_t head = std::min(fastest_first.size(), kMostRows / 2);
  const size_t step = std::max<size_t>(1, (fastest_first.size() - head) / (kMostRows - kMostRows / 2));
  for (size_t i = 0; i < fastest_first.size(); i += i < head ? 1 : step) kept.push_back(fastest_first[i]);
  return kept;
}

}  // namespace

ShapeModel::ShapeModel(std::vector<std::string> columns, const attune::v1::Device& device)
    : columns_(std::move(columns)), sms_(static_cast<double>(std::max<int64_t>(1, device.compute_units()))) {}

double ShapeModel::Column(const std::string& name, const std::vector<double>& features, double otherwise) const {
  const auto it = std::find(columns_.begin(), columns_.end(), name);
  if (it == columns_.end()) return otherwise;
  const double value = features[static_cast<size_t>(it - columns_.begin())];
  return value == search::kMissing ? otherwise : value;
}

double ShapeModel::Waste(const Problem& problem, const std::vector<double>& features) const {
  const double pack = std::max(1.0, Column("pack", features, 1));
  const double splits = std::max(1.0, Column("KV_SPLITS", features, 1));
  const double rows = CeilRatio(static_cast<double>(problem.seq_q) * pack, Column("BLOCK_M", features, 0));
  const double keys = CeilRatio(static_cast<double>(problem.seq_kv) / splits, Column("BLOCK_N", features, 0));
  return rows * keys * CeilRatio(Column("items", features, sms_), sms_);
}

std::vector<double> ShapeModel::Row(const Problem& problem, const std::vector<double>& features) const {
  std::vector<double> row;
  for (double feature : features) row.push_back(feature == search::kMissing ? -1 : Logarithm(feature));
  const double items = std::max(1.0, Column("items", features, 1));
  const double resident = std::max(1.0, Column("resident", features, 1));
  const double splits = std::max(1.0, Column("KV_SPLITS", features, 1));
  const double tile_keys = std::max(1.0, Column("BLOCK_N", features, 1));
  row.push_back(std::log2(items / sms_));
  row.push_back(CeilRatio(items, sms_ * resident));
  row.push_back(std::log2(static_cast<double>(problem.seq_kv) / (splits * tile_keys)));
  row.push_back(std::log2(std::max(1.0, std::min(resident, items / sms_)) * Column("warps", features, 1)));
  row.push_back(static_cast<double>(problem.head_dim));
  row.push_back(static_cast<double>(problem.dtype));
  row.push_back(static_cast<double>(problem.kv_dtype));
  row.push_back(static_cast<double>(problem.mask));
  return row;
}

void ShapeModel::Learn(const std::vector<const TunedProblem*>& tuned) {
  if (!tuned.empty() && tuned == learned_) return;
  learned_ = tuned;
  search::TrainingRows rows;
  for (const TunedProblem* one : tuned) {
    const Choices& choices = one->choices;
    const auto over_waste = [&](size_t variant) {
      return std::log(one->us[variant] / Waste(choices.problem, choices.features[variant]));
    };
    std::vector<double> best;
    for (size_t i = 0; i < std::max<size_t>(5, one->fastest_first.size() / 10); ++i) {
      if (i < one->fastest_first.size()) best.push_back(over_waste(one->fastest_first[i]));
    }
    std::nth_element(best.begin(), best.begin() + static_cast<ptrdiff_t>(best.size() / 2), best.end());
    const double level = best[best.size() / 2];
    const std::vector<size_t> kept = Thinned(one->fastest_first);
    for (size_t variant : kept) {
      rows.Add(Row(choices.problem, choices.features[variant]), over_waste(variant) - level,
               1 / static_cast<double>(kept.size()));
    }
  }
  trees_ = search::TreeEnsemble::Fit(rows, {.trees = 64, .min_leaf = 2, .seed = 1});
}

double ShapeModel::Expect(const Choices& choices, size_t variant) const {
  const std::vector<double>& features = choices.features[variant];
  return trees_.Predict(Row(choices.problem, features)).mean + std::log(Waste(choices.problem, features));
}

}  // namespace attune::replay
