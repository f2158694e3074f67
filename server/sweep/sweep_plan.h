// What a sweep plan asks for, beside its problems (expand_plan.h).
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PLAN_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PLAN_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "attune/v1/search.pb.h"
#include "attune/v1/sweep.pb.h"
#include "proto/attune/expand_plan.h"

namespace attune::sweep {

// The share above which a slow-down counts; 0.02 where the plan does not say.
inline double RegressionOf(const v1::SweepPlan& plan) { return plan.regression() > 0 ? plan.regression() : 0.02; }

inline v1::Strategy::Kind StrategyOf(const v1::SweepPlan& plan) {
  if (plan.strategy() != v1::Strategy::KIND_UNSPECIFIED) return plan.strategy();
  return plan.budget().trials_per_problem() > 0 ? v1::Strategy::KIND_RANDOM : v1::Strategy::KIND_EXHAUSTIVE;
}

// Of the sweep, or of one of its problems: `what` it works on.
inline std::string TitleOf(const v1::SweepPlan& plan, absl::string_view what) {
  return absl::StrCat("sweep ", plan.title(), plan.title().empty() ? "" : ": ", what);
}

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PLAN_H_
