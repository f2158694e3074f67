// WatchOperation's stream: the newest state whenever the wire is free, the done state last.
#ifndef ATTUNE_SERVER_SERVICE_WATCH_H_
#define ATTUNE_SERVER_SERVICE_WATCH_H_

#include "absl/status/status.h"
#include "attune/v1/service.grpc.pb.h"
#include "server/jobs/tuner.h"
#include "server/service/executor.h"

namespace attune::service {

// The reactor owns itself and is gone after OnDone. Tuner and executor live longer; so does the context, until then.
grpc::ServerWriteReactor<v1::Operation>* StartWatch(const grpc::CallbackServerContext& context, jobs::Tuner* tuner,
                                                    Executor* executor, const v1::WatchOperationRequest& request);

// The stream of a call that ends with `why` before it begins.
grpc::ServerWriteReactor<v1::Operation>* RefuseWatch(const grpc::CallbackServerContext& context,
                                                     const absl::Status& why);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_WATCH_H_
