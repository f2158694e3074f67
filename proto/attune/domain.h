// Ranges of problems that one answer holds for: the axes along which problems differ, and the recipe at another length.
#ifndef ATTUNE_PROTO_ATTUNE_DOMAIN_H_
#define ATTUNE_PROTO_ATTUNE_DOMAIN_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"

namespace attune {

// The axes along which `problem` has neighbours. Queries and keys of one length change together.
std::vector<v1::Domain::Axis> AxesOf(const Problem& problem);

// The problem's length along one of its axes.
int64_t LengthAlong(v1::Domain::Axis axis, const Problem& problem);

// `problem` with another length; not normalised, and perhaps longer than is allowed.
Problem WithLength(v1::Domain::Axis axis, int64_t length, Problem problem);

// step.base + step.slope * floor((length + step.add) / step.divide). InvalidArgument says what is wrong with a step, as
// others may send one: a divide below 1, a negative length + add, a number beyond 64 bits.
absl::StatusOr<int64_t> ValueAt(const v1::Step& step, int64_t length);

// Gives `change` every number of a recipe that a Varying can name, where it is (a Varying without its step) and what it
// is, and stores what that returns. What an i32 cannot hold is cut off.
void ChangeNumbers(v1::LaunchRecipe& recipe, const std::function<int64_t(const v1::Varying&, int64_t)>& change);

// The recipe of the problem in `domain` that has `length`, made from that of any problem in it. InvalidArgument for a
// domain that does not fit the recipe.
absl::StatusOr<v1::LaunchRecipe> RecipeAt(v1::LaunchRecipe recipe, const v1::Domain& domain, int64_t length);

// "kv", "q", "q=kv", "batch".
absl::string_view Word(v1::Domain::Axis axis);

// "kv 897..1152, batch 4..7": of each axis one range from the lowest to the highest length.
std::string RangesText(const google::protobuf::RepeatedPtrField<v1::Domain>& domains);

}  // namespace attune

#endif  // ATTUNE_PROTO_ATTUNE_DOMAIN_H_
