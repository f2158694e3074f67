// A sweep's progress: that of the problems at hand together, and of the sweep as a whole.
#ifndef ATTUNE_SERVER_SWEEP_SWEEP_PROGRESS_H_
#define ATTUNE_SERVER_SWEEP_SWEEP_PROGRESS_H_

#include <cstdint>
#include <vector>

#include "attune/v1/service.pb.h"
#include "server/sweep/sweep_pace.h"

namespace attune::sweep {

// `at_hand`: the operations of the problems that are worked on, or wait; first come, first. Their trials and compiles
// are added up. The sweep waits while all of them do. `pace` knows nothing yet of those at hand.
v1::OperationProgress ProgressOf(const std::vector<v1::Operation>& at_hand, int64_t done, int64_t problems,
                                 SweepPace pace);

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_SWEEP_PROGRESS_H_
