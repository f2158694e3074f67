// The problems that a sweep plan asks for.
#ifndef ATTUNE_PROTO_EXPAND_PLAN_H_
#define ATTUNE_PROTO_EXPAND_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/sweep.pb.h"
#include "proto/attune/problem.h"

namespace attune {

// Of one plan, doubles included.
inline constexpr int64_t kMostProblems = 100'000;

// In the plan's order, each once; products vary their last list fastest. InvalidArgument names the entry, its value and
// what is allowed.
absl::StatusOr<std::vector<Problem>> ExpandPlan(const v1::SweepPlan& plan);

}  // namespace attune

#endif  // ATTUNE_PROTO_EXPAND_PLAN_H_
