#include "server/service/calls.h"

#include <new>

#include "server/service/errors.h"
#include "server/service/limits.h"

namespace attune::service {

grpc::ServerUnaryReactor* Now(grpc::CallbackServerContext* context, const char* method, const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status, method));
  return reactor;
}

absl::Status Work(grpc::CallbackServerContext* context, const google::protobuf::Message& request,
                  const std::function<absl::Status()>& work) {
  if (context->IsCancelled()) return absl::CancelledError("the call was cancelled");
  if (absl::Status status = CheckLimits(request); !status.ok()) return status;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server has too little memory left for this call; ask for less");
  }
}

}  // namespace attune::service
