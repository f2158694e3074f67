// The problems a sweep plan asks for.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PLAN_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/sweep.pb.h"
#include "proto/attune/problem.h"

namespace attune::sweep {

// Of one plan, doubles included.
inline constexpr int64_t kMostProblems = 100'000;

// In the plan's order, each once; products vary their last list fastest. InvalidArgument names the entry, its value and
// what is allowed.
absl::StatusOr<std::vector<Problem>> ExpandPlan(const v1::SweepPlan& plan);

// The share above which a slow-down counts; 0.02 where the plan does not say.
double RegressionOf(const v1::SweepPlan& plan);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PLAN_H_
