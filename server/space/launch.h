// One launch of a manifest, evaluated for a recipe.
#ifndef ATTUNE_SERVER_SPACE_LAUNCH_H_
#define ATTUNE_SERVER_SPACE_LAUNCH_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "attune/family/v1/family.pb.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"
#include "server/space/evaluator.h"

namespace attune::space {

// Fills in `to` for the evaluator's values, which are `problem`'s. `scratch` has the recipe's indices by name;
// `is_first` says that no launch of the recipe runs before this one. InvalidArgument names the field that does not come
// to what is allowed.
absl::Status EvaluateLaunch(const Evaluator& evaluator, const family::v1::Launch& from, const Problem& problem,
                            const std::map<std::string, int>& scratch, bool is_first, v1::KernelLaunch* to);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_LAUNCH_H_
