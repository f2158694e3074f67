// What a sweep would do today; compiles and runs nothing.
#ifndef ATTUNE_SERVER_TUNING_PLAN_SWEEP_H_
#define ATTUNE_SERVER_TUNING_PLAN_SWEEP_H_

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/tuning/device_slot.h"
#include "server/tuning/job.h"

namespace attune::tuning {

// A row for each problem, in the plan's order.
absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const Workshop& shop, const DeviceSlot& slot,
                                                const v1::SweepPlan& plan);

}  // namespace attune::tuning

#endif  // ATTUNE_SERVER_TUNING_PLAN_SWEEP_H_
