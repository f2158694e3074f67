#include "server/search/feature_columns.h"

#include <algorithm>

#include "server/search/field.h"

namespace attune::search {
namespace {

constexpr size_t kSizes = 4;

std::vector<double> SizesOf(const Problem& problem) {
  return {static_cast<double>(problem.batch * problem.heads_q),
          static_cast<double>(problem.heads_q) / static_cast<double>(problem.heads_kv),
          static_cast<double>(problem.seq_q), static_cast<double>(problem.seq_kv)};
}

}  // namespace

FeatureColumns::FeatureColumns(const std::vector<std::shared_ptr<const space::Family>>& families)
    : names_({"problem.heads", "problem.group", "problem.seq_q", "problem.seq_kv"}) {
  for (const auto& family : families) {
    std::vector<size_t>& columns = columns_[family->name()];
    columns.clear();
    for (const std::string& name : space::FeatureNames(*family)) columns.push_back(ColumnOf(name));
  }
}

size_t FeatureColumns::ColumnOf(const std::string& name) {
  const auto it = std::find(names_.begin() + kSizes, names_.end(), name);
  const auto column = static_cast<size_t>(it - names_.begin());
  if (it == names_.end()) names_.push_back(name);
  return column;
}

absl::StatusOr<std::vector<double>> FeatureColumns::Of(const space::Variant& variant, const Problem& problem,
                                                       const v1::Device& device) const {
  const absl::StatusOr<std::vector<double>> features = space::Features(variant, problem, device);
  if (!features.ok()) return features.status();
  std::vector<double> row = SizesOf(problem);
  row.resize(names_.size(), kMissing);
  const std::vector<size_t>& columns = columns_.at(variant.family->name());
  for (size_t i = 0; i < columns.size(); ++i) row[columns[i]] = (*features)[i];
  return row;
}

}  // namespace attune::search
