// compute-sanitizer's turn in a loop: on every so many iterations, what would be kept runs under its tools first.
#ifndef ATTUNE_SERVER_SUBMIT_SANITIZER_GATE_H_
#define ATTUNE_SERVER_SUBMIT_SANITIZER_GATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/submission.pb.h"
#include "server/profile/sanitizing.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::submit {

// Whether the principal's loop, to which the request belongs, has had no turn in the last iterations.
absl::StatusOr<bool> IsSanitizersTurn(const v1::SubmitRequest& request, const std::string& principal,
                                      store::Store& store, const trials::Job& job);

// Reverts the rows that were kept and have findings. A row that cannot be sanitized, and a tool without a result, is
// warned of. Cancelled when the job was asked to stop.
absl::Status Sanitize(const profile::SanitizerMeans& means, trials::DeviceSlot& slot, const trials::Job& job,
                      v1::SubmitResult& result);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_SANITIZER_GATE_H_
