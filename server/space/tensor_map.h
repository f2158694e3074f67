// Tensor maps of a manifest: what can be said of them before anything is evaluated, and what they come to in a recipe.
#ifndef ATTUNE_SERVER_SPACE_TENSOR_MAP_H_
#define ATTUNE_SERVER_SPACE_TENSOR_MAP_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attune/family/v1/family.pb.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"
#include "server/space/evaluator.h"

namespace attune::space {

// InvalidArgument unless the base exists and dims, strides and box fit one another. `scratch` has the manifest's names.
absl::Status CheckTensorMapArgument(absl::string_view field, const family::v1::TensorMapArgument& map,
                                    const std::set<std::string>& scratch);

// The map's expressions that are given, each with the name of its field: "dims[1]".
std::vector<std::pair<std::string, const std::string*>> ExpressionsOf(const family::v1::TensorMapArgument& map);

// Fills in `to`. `scratch` has the recipe's indices by name. InvalidArgument names the field that the driver would
// refuse.
absl::Status EvaluateTensorMap(const Evaluator& evaluator, absl::string_view field,
                               const family::v1::TensorMapArgument& from, const Problem& problem,
                               const std::map<std::string, int>& scratch, v1::TensorMap* to);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_TENSOR_MAP_H_
