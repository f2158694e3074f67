// How an operation says that it has ended.
#ifndef ATTUNE_SERVER_JOBS_OPERATION_END_H_
#define ATTUNE_SERVER_JOBS_OPERATION_END_H_

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/quote.h"
#include "server/base/proto_time.h"

namespace attune::jobs {

// It has ended now, in `state`.
inline void SetEnded(v1::Operation::State state, v1::Operation& operation) {
  operation.set_state(state);
  operation.set_done(true);
  operation.mutable_progress()->clear_eta();
  SetTimestamp(absl::Now(), operation.mutable_end_time());
}

// What has ended is FAILED.
inline void SetFailed(const absl::Status& error, v1::Operation& operation) {
  operation.set_state(v1::Operation::STATE_FAILED);
  operation.mutable_error()->set_code(static_cast<int>(error.code()));
  operation.mutable_error()->set_message(ErrorLine(error.message()));
  operation.mutable_progress()->set_message(operation.error().message());
}

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_OPERATION_END_H_
