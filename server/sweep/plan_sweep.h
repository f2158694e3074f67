// What a sweep would do today; compiles and runs nothing.
#ifndef ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_
#define ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/jobs/job.h"
#include "server/space/space.h"
#include "server/trials/device_slot.h"

namespace attune::sweep {

// Planning takes as long as enumerating the problems' variants; the rest of a longer plan is nobody's to wait for.
inline constexpr absl::Duration kMostPlanning = absl::Seconds(30);

// A row for each problem, in the plan's order; why one cannot be tuned is its row's. Cancelled when `stopped`,
// DeadlineExceeded after kMostPlanning.
absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const jobs::Workshop& shop, const trials::DeviceSlot& slot,
                                                const v1::SweepPlan& plan, const space::Stopped& stopped);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_
