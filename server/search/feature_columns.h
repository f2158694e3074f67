// Variants of several families and problems as rows of the same columns, for a model.
#ifndef ATTUNE_SERVER_SEARCH_FEATURE_COLUMNS_H_
#define ATTUNE_SERVER_SEARCH_FEATURE_COLUMNS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::search {

class FeatureColumns {
 public:
  // The families' features, those of one name in one column, and the problem's sizes.
  explicit FeatureColumns(const std::vector<std::shared_ptr<const space::Family>>& families);

  const std::vector<std::string>& names() const { return names_; }
  // The variant's family is one of those given. kMissing where it has no such feature.
  absl::StatusOr<std::vector<double>> Of(const space::Variant& variant, const Problem& problem,
                                         const v1::Device& device) const;

 private:
  size_t ColumnOf(const std::string& name);

  std::vector<std::string> names_;
  std::map<std::string, std::vector<size_t>> columns_;  // of each family's features
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_FEATURE_COLUMNS_H_
