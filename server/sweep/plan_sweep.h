// What a sweep would do today; compiles and runs nothing.
#ifndef ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_
#define ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/catalog/host.h"
#include "server/catalog/results.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::sweep {

// Planning takes as long as enumerating the problems' variants; the rest of a longer plan is nobody's to wait for.
inline constexpr absl::Duration kMostPlanning = absl::Seconds(30);

// A row for each problem, in the plan's order; why one cannot be tuned is its row's. The plan is valid and normalised.
// Cancelled when `stopped`, DeadlineExceeded after kMostPlanning.
absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const v1::SweepPlan& plan, const catalog::Host& host,
                                                catalog::Results& results, store::Store& store,
                                                const space::Stopped& stopped = nullptr,
                                                const Clock& clock = SteadyNow);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_PLAN_SWEEP_H_
