// What a sweep would do today; compiles and runs nothing.
#ifndef ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_
#define ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/jobs/job.h"
#include "server/trials/device_slot.h"

namespace attune::sweep {

// A row for each problem, in the plan's order.
absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const jobs::Workshop& shop, const trials::DeviceSlot& slot,
                                                const v1::SweepPlan& plan);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_
