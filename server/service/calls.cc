#include "server/service/calls.h"

#include <new>

#include "server/access/principal.h"
#include "server/service/call_context.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace attune::service {

absl::Status Admit(const grpc::CallbackServerContext& context, access::MethodRow method) {
  const auto* const call = dynamic_cast<const CallContext*>(&context);
  if (call == nullptr) return absl::InternalError("nobody knows whom the call is from");
  return access::CheckRole(call->principal(), *method);
}

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context, access::MethodRow method,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status, method->name));
  return reactor;
}

grpc::ServerUnaryReactor* Now(grpc::CallbackServerContext* context, access::MethodRow method,
                              absl::FunctionRef<void()> answer) {
  const absl::Status admitted = Admit(*context, method);
  if (admitted.ok()) answer();
  return Finish(context, method, admitted);
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
