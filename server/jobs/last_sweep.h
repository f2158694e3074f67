// When a sweep last succeeded, across restarts.
#ifndef ATTUNE_SERVER_JOBS_LAST_SWEEP_H_
#define ATTUNE_SERVER_JOBS_LAST_SWEEP_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/store/queue.h"

namespace attune::jobs {

inline bool IsSuccessfulSweep(const v1::Operation& operation) {
  return operation.state() == v1::Operation::STATE_SUCCEEDED && operation.has_sweep() && operation.parent().empty();
}

// The end of the newest sweep that succeeded.
absl::StatusOr<std::optional<absl::Time>> LastSweep(store::Queue& queue);

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_LAST_SWEEP_H_
