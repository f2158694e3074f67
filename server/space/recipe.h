// A recipe and what its code is compiled with, from one evaluation.
#ifndef ATTUNE_SERVER_SPACE_RECIPE_H_
#define ATTUNE_SERVER_SPACE_RECIPE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::space {

// RecipeFor, and the values of the manifest's defines for the problem, in their order: while they are the same, so is
// the code.
absl::StatusOr<v1::LaunchRecipe> RecipeAndDefines(const Variant& variant, const Problem& problem,
                                                  const v1::Device& device, std::vector<double>* defines);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_RECIPE_H_
