#include "server/service/calls.h"

#include <new>

#include "absl/time/clock.h"
#include "attune/v1/problem.pb.h"
#include "proto/attune/problem.h"
#include "server/access/audit_log.h"
#include "server/access/principal.h"
#include "server/service/call_context.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace attune::service {

absl::Status Admit(const grpc::CallbackServerContext& context, access::MethodRow method,
                   const google::protobuf::Message* request) {
  const auto* const call = dynamic_cast<const CallContext*>(&context);
  if (call == nullptr) return absl::InternalError("nobody knows whom the call is from");
  const auto& [principal, audit] = call->caller();
  absl::Status status = access::CheckRole(principal, *method);
  if (!status.ok() && audit != nullptr) {
    const std::string resource = request == nullptr ? "" : ResourceOf(*request);
    audit->Refused(access::AuditLine(absl::Now(), principal, *method, resource, status));
  }
  return status;
}

void Audit(const grpc::CallbackServerContext& context, access::MethodRow method,
           const google::protobuf::Message& request, const absl::Status& outcome) {
  const auto* const call = dynamic_cast<const CallContext*>(&context);
  if (!method->changes || call == nullptr || call->caller().audit == nullptr) return;
  const auto& [principal, audit] = call->caller();
  audit->Changed(access::AuditLine(absl::Now(), principal, *method, ResourceOf(request), outcome));
}

std::string ResourceOf(const google::protobuf::Message& request) {
  const google::protobuf::Reflection& reflection = *request.GetReflection();
  if (const auto* problem = google::protobuf::DynamicCastToGenerated<v1::Problem>(&request)) {
    const absl::StatusOr<Problem> parsed = FromProto(*problem);
    return parsed.ok() ? ToText(*parsed) : "";
  }
  for (const char* name : {"name", "problem_text", "problem", "baseline", "filter", "id", "title", "plan"}) {
    const google::protobuf::FieldDescriptor* field = request.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->is_repeated()) continue;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
      return reflection.GetString(request, field);
    }
    return ResourceOf(reflection.GetMessage(request, field));
  }
  return "";
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
