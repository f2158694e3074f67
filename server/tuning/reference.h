// The kernels that a back end brings for checking and for the launch floor.
#ifndef ATTUNE_SERVER_TUNING_REFERENCE_H_
#define ATTUNE_SERVER_TUNING_REFERENCE_H_

#include "absl/status/statusor.h"
#include "server/tuning/candidates.h"
#include "server/tuning/job.h"

namespace attune::tuning {

// Both reference kernels, compiled if need be; the inputs' seed follows from the problem. FailedPrecondition when the
// back end has no reference family or it does not apply.
absl::StatusOr<worker::v1::PrepareRequest> MakePrepareRequest(const JobContext& context, const Subject& subject);

// The median of an empty launch, us; 0 when the back end has no floor family.
absl::StatusOr<double> MeasureFloor(const JobContext& context, const Subject& subject, DeviceSession& session);

}  // namespace attune::tuning

#endif  // ATTUNE_SERVER_TUNING_REFERENCE_H_
