// What trials are made of.
#ifndef ATTUNE_SERVER_TRIALS_TUNING_KEY_H_
#define ATTUNE_SERVER_TRIALS_TUNING_KEY_H_

#include "absl/status/statusor.h"
#include "proto/attune/problem.h"
#include "server/catalog/host.h"
#include "server/catalog/tuning_key.h"

namespace attune::trials {

// A problem as it is tried on a device of this host today. Unavailable when the device's backend has no compiler here,
// FailedPrecondition when the problem cannot fit the memory there is (verify/footprint.h).
absl::StatusOr<catalog::TuningKey> MakeTuningKey(const Problem& problem, const v1::Device& device, v1::Policy policy,
                                                 const catalog::Host& host);

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_TUNING_KEY_H_
