// What the methods of a call have in common, whatever they answer.
#ifndef ATTUNE_SERVER_SERVICE_CALLS_H_
#define ATTUNE_SERVER_SERVICE_CALLS_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "proto/attune/problem.h"
#include "server/access/method.h"
#include "server/access/principal.h"
#include "server/access/quotas.h"
#include "server/catalog/host.h"
#include "server/catalog/result_key.h"
#include "server/jobs/tuner.h"
#include "server/service/executor.h"
#include "server/submit/submissions.h"

namespace attune::service {

// OK when the caller may make the call; else what CheckRole says, the most bytes of a request or its quotas, which the
// audit log is told. The
// context is one of a PrincipalServer. `request`: null where it is not known yet, but for its `bytes`. A call that
// brings a token is the token's, whoever has connected: Unauthenticated when that is not one.
absl::Status Admit(grpc::CallbackServerContext& context, access::MethodRow method,
                   const google::protobuf::Message* request = nullptr, size_t bytes = 0);

// Tells the audit log of a call that was admitted, if it is one that changes something.
void Audit(const grpc::CallbackServerContext& context, access::MethodRow method,
           const google::protobuf::Message& request, const absl::Status& outcome);

// Tells the audit log of a call that no method saw, as its request could not be read.
void AuditUnread(grpc::ServerContextBase* context, const std::string& method, const absl::Status& why);

// Whom a call that was admitted is from.
const access::Principal& PrincipalOf(const grpc::CallbackServerContext& context);

// What holds for it; 0 where nothing does.
access::QuotaLimits QuotasOf(const grpc::CallbackServerContext& context);

// Whom the job that a call starts is for.
jobs::Asker AskerOf(const grpc::CallbackServerContext& context);

// Who reads submissions by it.
submit::Reader ReaderOf(const grpc::CallbackServerContext& context);

template <typename T>
absl::Status Fill(absl::StatusOr<T> result, T* response) {
  if (!result.ok()) return result.status();
  *response = *std::move(result);
  return absl::OkStatus();
}

// What a request is about: the operation, problem, backup or sweep that it names; empty where it names none.
std::string ResourceOf(const google::protobuf::Message& request);

// How a call ends, which is counted: with the status that it is to be finished with.
grpc::Status End(const grpc::CallbackServerContext& context, access::MethodRow method, const absl::Status& status);
// For one whose status is gRPC's already.
void CountEnd(const grpc::CallbackServerContext& context, access::MethodRow method, grpc::StatusCode code);

// Finishes a call on gRPC's own thread. A call has one reactor: nothing else may ask its context for it.
grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context, access::MethodRow method,
                                 const absl::Status& status);

// A call that is admitted and answered on gRPC's own thread.
grpc::ServerUnaryReactor* Now(grpc::CallbackServerContext* context, access::MethodRow method,
                              absl::FunctionRef<void()> answer);

// A call that is admitted, and then answered by `work` on the executor; request and response live until then.
grpc::ServerUnaryReactor* Later(grpc::CallbackServerContext* context, access::MethodRow method,
                                const google::protobuf::Message& request, Executor& executor,
                                std::function<absl::Status()> work);

// What `work` gives, unless the call was cancelled or the request is beyond its limits. A request that asks for more
// memory than there is must not cost the others their server.
absl::Status Work(grpc::CallbackServerContext* context, const google::protobuf::Message& request,
                  const std::function<absl::Status()>& work);

// Of a request that is valid and normalised.
template <typename Request>
catalog::ResultKey KeyOf(const Request& request, const catalog::Host& host) {
  return {ToText(*FromProto(request.problem())), catalog::ClassNamed(request.device_id(), host), request.policy()};
}

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_CALLS_H_
