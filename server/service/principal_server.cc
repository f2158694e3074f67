#include "server/service/principal_server.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attune/v1/access.grpc.pb.h"
#include "attune/v1/blob.grpc.pb.h"
#include "attune/v1/fleet.grpc.pb.h"
#include "attune/v1/service.grpc.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "server/service/call_methods.h"
#include "server/service/calls.h"
#include "server/service/limits.h"
#include "server/service/unreadable_requests.h"

namespace attune::service {
namespace {

// Artifacts travel inside GetBest's response.
constexpr int kMostResponseBytes = 64 << 20;

// A connection that never speaks HTTP/2 ends after the first, one without calls after the second; a peer that is gone
// is found out by pings.
constexpr int kHandshakeMilliseconds = 10'000;
constexpr int kIdleMilliseconds = 10 * 60'000;
constexpr int kPingMilliseconds = 60'000;
constexpr int kPingAnswerMilliseconds = 20'000;
// Then a connection by a certificate takes no further call, and its client makes another one: by its certificate of
// that day.
constexpr int kAgeMilliseconds = 60 * 60'000;

// Beside the whole server (""): whether work is taken, and not only questions.
constexpr char kTuningHealth[] = "attune.tuning";

void Configure(grpc::ServerBuilder& builder, metrics::Calls* calls) {
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.SetMaxReceiveMessageSize(kMostReadBytes);
  builder.SetMaxSendMessageSize(kMostResponseBytes);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  const auto seen = [calls](grpc::ServerContextBase* context, const std::string& method, const absl::Status& why) {
    if (calls != nullptr) CountUnreadable(*calls, method);
    AuditUnread(context, method, why);
  };
  interceptors.push_back(MakeUnreadableRequests(v1::AttuneService::service_full_name(), {"GetBest"}, seen));
  interceptors.push_back(MakeUnreadableRequests(v1::AccessService::service_full_name(), {}, seen));
  interceptors.push_back(MakeUnreadableRequests(v1::BlobService::service_full_name(), {}, seen));
  interceptors.push_back(MakeUnreadableRequests(v1::FleetService::service_full_name(), {}, seen));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrincipalServer>> PrincipalServer::Start(
    Caller caller, const Services& services, const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<PrincipalServer> server(new PrincipalServer(std::move(caller)));
  grpc::ServerBuilder builder;
  Configure(builder, server->caller_.calls);
  if (server->caller_.certificates != nullptr) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kAgeMilliseconds);
  }
  builder.SetContextAllocator(std::make_unique<CallContexts>(server->caller_));
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD, credentials);
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::InternalError(absl::StrCat("the gRPC server for ", server->caller_.principal.name, " does not start"));
  }
  if (auto* health = server->server_->GetHealthCheckService()) {
    health->SetServingStatus(v1::AttuneService::service_full_name(), true);
  }
  return server;
}

void PrincipalServer::Take(int fd) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
}

void PrincipalServer::SetCanTune(bool can_tune) {
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(kTuningHealth, can_tune);
}

void PrincipalServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(false);
  server_->Shutdown(deadline);
  server_->Wait();
}

}  // namespace attune::service
