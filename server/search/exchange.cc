#include "server/search/exchange.h"

#include <set>

namespace attune::search {

Exchange::Exchange(const Field& field) : field_(field) {
  std::vector<std::vector<std::set<int64_t>>> values;
  for (size_t i = 0; i < field.points.size(); ++i) {
    const size_t family = FamilyOf(i);
    if (family >= by_values_.size()) by_values_.resize(family + 1);
    if (family >= values.size()) values.resize(family + 1);
    const std::vector<int64_t>& point = field.points[i].values;
    by_values_[family].emplace(point, i);
    if (values[family].size() < point.size()) values[family].resize(point.size());
    for (size_t parameter = 0; parameter < point.size(); ++parameter)
      values[family][parameter].insert(point[parameter]);
  }
  for (const auto& family : values) {
    auto& domains = domains_.emplace_back();
    for (const std::set<int64_t>& domain : family) domains.emplace_back(domain.begin(), domain.end());
  }
}

size_t Exchange::FamilyOf(size_t candidate) const { return field_.points[candidate].family; }

std::optional<size_t> Exchange::Find(size_t like, const std::vector<int64_t>& values) const {
  const auto& family = by_values_[FamilyOf(like)];
  const auto it = family.find(values);
  if (it == family.end()) return std::nullopt;
  return it->second;
}

std::vector<size_t> Exchange::Neighbours(size_t candidate) const {
  std::vector<size_t> neighbours;
  std::vector<int64_t> values = field_.points[candidate].values;
  const auto& domains = domains_[FamilyOf(candidate)];
  for (size_t parameter = 0; parameter < values.size(); ++parameter) {
    const int64_t own = values[parameter];
    for (int64_t other : domains[parameter]) {
      if (other == own) continue;
      values[parameter] = other;
      if (const std::optional<size_t> found = Find(candidate, values); found.has_value()) neighbours.push_back(*found);
    }
    values[parameter] = own;
  }
  return neighbours;
}

size_t Exchange::Distance(size_t a, size_t b) const {
  const std::vector<int64_t>& left = field_.points[a].values;
  const std::vector<int64_t>& right = field_.points[b].values;
  if (FamilyOf(a) != FamilyOf(b)) return left.size() + right.size() + 1;
  size_t distance = 0;
  for (size_t i = 0; i < left.size(); ++i) distance += left[i] != right[i] ? 1 : 0;
  return distance;
}

}  // namespace attune::search
