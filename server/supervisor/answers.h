// What a worker may answer. A kernel on a CPU shares its worker's memory and socket: what comes from there is looked at
// before anything believes it.
#ifndef ATTUNE_SERVER_SUPERVISOR_ANSWERS_H_
#define ATTUNE_SERVER_SUPERVISOR_ANSWERS_H_

#include "absl/status/status.h"
#include "attune/worker/v1/worker.pb.h"

namespace attune::supervisor {

// DataLoss when the response is of another kind than the request, or has a verdict or figures that no worker gives. An
// error response is always one.
absl::Status CheckAnswer(const worker::v1::Request& request, const worker::v1::Response& response);

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_ANSWERS_H_
