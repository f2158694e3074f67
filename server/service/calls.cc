#include "server/service/calls.h"

#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "attune/v1/blob.pb.h"
#include "attune/v1/problem.pb.h"
#include "grpcpp/security/auth_context.h"
#include "proto/attune/problem.h"
#include "server/access/audit_log.h"
#include "server/access/principal.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/reason.h"
#include "server/base/trace_parent.h"
#include "server/service/call_context.h"
#include "server/service/call_methods.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace attune::service {
namespace {

// "Bearer SECRET", whatever the case of its first word; nothing where the call brings none.
std::optional<absl::string_view> SecretIn(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return std::nullopt;
  constexpr absl::string_view kScheme = "bearer ";
  absl::string_view value(found->second.data(), found->second.size());
  if (absl::StartsWithIgnoreCase(value, kScheme)) value.remove_prefix(kScheme.size());
  return value;
}

// That of the caller's trace; empty where the call brings none.
std::string TraceOf(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find("traceparent");
  if (found == context.client_metadata().end()) return "";
  return TraceIdIn({found->second.data(), found->second.size()});
}

// What is wrong with the server, and with nothing that the caller could mend.
bool IsServersFault(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsUnknown(status) || absl::IsDataLoss(status);
}

void LogFailure(const grpc::CallbackServerContext& context, access::MethodRow method, const absl::Status& status) {
  const auto* const call = dynamic_cast<const CallContext*>(&context);
  std::vector<LogField> fields = {
      {"method", method->name}, {"code", absl::StatusCodeToString(status.code())}, {"error", status.message()}};
  if (call != nullptr) fields.emplace_back("principal", call->principal().name);
  if (const std::string trace = TraceOf(context); !trace.empty()) fields.emplace_back("trace", trace);
  Log(LogLevel::kError, "call failed", fields);
}

// Whom the certificate of its connection names.
absl::Status IdentifyByCertificate(CallContext& call) {
  if (call.caller().certificates == nullptr) return absl::OkStatus();
  const std::vector<grpc::string_ref> names = call.auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  absl::StatusOr<access::Principal> named =
      call.caller().certificates->Of(names.empty() ? "" : absl::string_view(names[0].data(), names[0].size()));
  if (!named.ok()) return named.status();
  call.set_principal(*std::move(named));
  return absl::OkStatus();
}

absl::Status Identify(CallContext& call) {
  const std::optional<absl::string_view> secret = SecretIn(call);
  if (!secret.has_value()) return IdentifyByCertificate(call);
  if (call.caller().overheard) {
    return WithReason(absl::UnauthenticatedError(
                          "a token came in clear from another host, where others may have read it: revoke it; tokens "
                          "are for Unix sockets, this host's own addresses and TLS"),
                      "TOKEN_IN_CLEAR");
  }
  if (call.caller().tokens == nullptr) return absl::UnauthenticatedError("this server knows no tokens");
  const absl::StatusOr<const access::Principal*> found = call.caller().tokens->Find(*secret, absl::Now());
  if (found.ok()) call.set_principal(*found);
  return found.status();
}

}  // namespace

absl::Status Admit(grpc::CallbackServerContext& context, access::MethodRow method,
                   const google::protobuf::Message* request, size_t bytes) {
  auto* const call = dynamic_cast<CallContext*>(&context);
  if (call == nullptr) return absl::InternalError("nobody knows whom the call is from");
  if (metrics::Calls* const calls = call->caller().calls; calls != nullptr) {
    call->set_begun(SteadyNow());
    calls->Begun(IndexOf(method));
  }
  absl::Status status = Identify(*call);
  if (status.ok()) status = access::CheckRole(call->principal(), *method);
  if (request != nullptr) bytes = request->ByteSizeLong();
  if (status.ok() && bytes > static_cast<size_t>(kMostRequestBytes)) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("the request has ", bytes, " bytes; allowed: at most ", kMostRequestBytes));
  }
  if (access::Quotas* const quotas = call->quotas(); status.ok() && quotas != nullptr) {
    status = quotas->Take(call->principal(), bytes, SteadyNow());
  }
  if (!status.ok() && call->caller().audit != nullptr) {
    const std::string resource = request == nullptr ? "" : ResourceOf(*request);
    call->caller().audit->Refused(access::AuditLine(absl::Now(), call->principal(), *method, resource, status));
  }
  return status;
}

access::QuotaLimits QuotasOf(const grpc::CallbackServerContext& context) {
  const access::Quotas* const quotas = dynamic_cast<const CallContext&>(context).quotas();
  return quotas == nullptr ? access::QuotaLimits() : quotas->limits();
}

jobs::Asker AskerOf(const grpc::CallbackServerContext& context) {
  jobs::Asker asker{.principal = PrincipalOf(context).name, .trace = TraceOf(context)};
  const access::QuotaLimits quotas = QuotasOf(context);
  if (quotas.operations > 0) asker.most_unfinished = static_cast<size_t>(quotas.operations);
  if (quotas.device_seconds > 0) asker.most_device_time = absl::Seconds(quotas.device_seconds);
  return asker;
}

submit::Reader ReaderOf(const grpc::CallbackServerContext& context) {
  const access::Principal& principal = PrincipalOf(context);
  return {principal.name, principal.role == access::Role::kAdmin};
}

const access::Principal& PrincipalOf(const grpc::CallbackServerContext& context) {
  return dynamic_cast<const CallContext&>(context).principal();
}

void Audit(const grpc::CallbackServerContext& context, access::MethodRow method,
           const google::protobuf::Message& request, const absl::Status& outcome) {
  const auto* const call = dynamic_cast<const CallContext*>(&context);
  if (!method->changes || call == nullptr || call->caller().audit == nullptr) return;
  call->caller().audit->Changed(
      access::AuditLine(absl::Now(), call->principal(), *method, ResourceOf(request), outcome));
}

void AuditUnread(grpc::ServerContextBase* context, const std::string& method, const absl::Status& why) {
  auto* const call = dynamic_cast<CallContext*>(context);
  const access::Method* const row = access::FindMethod(method);
  if (call == nullptr || call->caller().audit == nullptr || row == nullptr) return;
  // A token that is not known leaves the call its connection's.
  if (const absl::Status known = Identify(*call); !known.ok()) {
    return call->caller().audit->Refused(access::AuditLine(absl::Now(), call->principal(), *row, "", known));
  }
  call->caller().audit->Refused(access::AuditLine(absl::Now(), call->principal(), *row, "", why));
}

std::string ResourceOf(const google::protobuf::Message& request) {
  const google::protobuf::Reflection& reflection = *request.GetReflection();
  if (const auto* problem = google::protobuf::DynamicCastToGenerated<v1::Problem>(&request)) {
    const absl::StatusOr<Problem> parsed = FromProto(*problem);
    return parsed.ok() ? ToText(*parsed) : "";
  }
  if (const auto* blob = google::protobuf::DynamicCastToGenerated<v1::PutBlobRequest>(&request)) {
    return absl::StrCat(blob->namespace_(), "/", blob->key(), "/", blob->file());
  }
  if (const auto* blobs = google::protobuf::DynamicCastToGenerated<v1::DeleteBlobsRequest>(&request)) {
    return absl::StrJoin({blobs->principal(), blobs->namespace_(), blobs->key()}, "/");
  }
  for (const char* name : {"name", "problem_text", "problem", "baseline", "filter", "id", "title", "plan", "loop"}) {
    const google::protobuf::FieldDescriptor* field = request.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->is_repeated()) continue;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
      return reflection.GetString(request, field);
    }
    return ResourceOf(reflection.GetMessage(request, field));
  }
  return "";
}

void CountEnd(const grpc::CallbackServerContext& context, access::MethodRow method, grpc::StatusCode code) {
  const auto* const call = dynamic_cast<const CallContext*>(&context);
  if (call == nullptr || call->caller().calls == nullptr) return;
  call->caller().calls->Ended(IndexOf(method), code, SteadyNow() - call->begun());
}

grpc::Status End(const grpc::CallbackServerContext& context, access::MethodRow method, const absl::Status& status) {
  if (IsServersFault(status)) LogFailure(context, method, status);
  grpc::Status end = ToGrpc(status, method->name);
  CountEnd(context, method, end.error_code());
  return end;
}

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context, access::MethodRow method,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(End(*context, method, status));
  return reactor;
}

grpc::ServerUnaryReactor* Now(grpc::CallbackServerContext* context, access::MethodRow method,
                              absl::FunctionRef<void()> answer) {
  const absl::Status admitted = Admit(*context, method);
  if (admitted.ok()) answer();
  return Finish(context, method, admitted);
}

grpc::ServerUnaryReactor* Later(grpc::CallbackServerContext* context, access::MethodRow method,
                                const google::protobuf::Message& request, Executor& executor,
                                std::function<absl::Status()> work) {
  if (absl::Status admitted = Admit(*context, method, &request); !admitted.ok()) {
    return Finish(context, method, admitted);
  }
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  executor.Run([context, reactor, method, &request, work = std::move(work)] {
    const absl::Status status = Work(context, request, work);
    Audit(*context, method, request, status);
    reactor->Finish(End(*context, method, status));
  });
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
