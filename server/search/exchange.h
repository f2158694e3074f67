// Which candidates are a step from each other: of one family, and all parameters but one the same.
#ifndef ATTUNE_SERVER_SEARCH_EXCHANGE_H_
#define ATTUNE_SERVER_SEARCH_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/search/field.h"

namespace attune::search {

class Exchange {
 public:
  // Of a field with points, which outlives it.
  explicit Exchange(const Field& field);

  // In the order of the parameters and their values.
  std::vector<size_t> Neighbours(size_t candidate) const;
  // The candidate of `like`'s family that has these values.
  std::optional<size_t> Find(size_t like, const std::vector<int64_t>& values) const;
  // In how many parameters two candidates differ; of different families more than any two of one.
  size_t Distance(size_t a, size_t b) const;
  size_t FamilyOf(size_t candidate) const;

 private:
  const Field& field_;
  std::vector<std::map<std::vector<int64_t>, size_t>> by_values_;  // of each family
  std::vector<std::vector<std::vector<int64_t>>> domains_;         // of each family's parameters, sorted
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_EXCHANGE_H_
