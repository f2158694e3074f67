// The kernels that a back end brings for checking and for the launch floor.
#ifndef ATTUNE_SERVER_TRIALS_REFERENCE_H_
#define ATTUNE_SERVER_TRIALS_REFERENCE_H_

#include "absl/status/statusor.h"
#include "server/jobs/job.h"
#include "server/search/candidates.h"

namespace attune::trials {

// Both reference kernels, compiled if need be; the inputs' seed follows from the problem. FailedPrecondition when the
// back end has no reference family or it does not apply.
absl::StatusOr<worker::v1::PrepareRequest> MakePrepareRequest(const jobs::JobContext& context,
                                                              const search::Subject& subject);

// The median of an empty launch, us; 0 when the back end has no floor family.
absl::StatusOr<double> MeasureFloor(const jobs::JobContext& context, const search::Subject& subject,
                                    DeviceSession& session);

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_REFERENCE_H_
