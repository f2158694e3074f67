#include "server/service/server.h"

#include <chrono>
#include <utility>
#include <vector>

#include "attune/v1/service.grpc.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
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

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const std::vector<std::string>& addresses, grpc::Service* service,
                                                      ConnectionLimits limits) {
  absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Open(addresses);
  if (!listener.ok()) return listener.status();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  builder.SetMaxSendMessageSize(kMostResponseBytes);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeUnreadableRequests(v1::AttuneService::service_full_name(), {"GetBest"}));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  auto server = std::make_unique<Server>();
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server->acceptor_ =
      builder.experimental().AddExternalConnectionAcceptor(External::FROM_FD, grpc::InsecureServerCredentials());
  builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return absl::InternalError("the gRPC server does not start");
  server->listener_ = *std::move(listener);
  server->listener_->Start(limits, [acceptor = server->acceptor_.get()](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    acceptor->HandleNewConnection(&connection);
  });
  return server;
}

void Server::Shutdown(absl::Duration grace) {
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(false);
  listener_->Stop();
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace));
  server_->Wait();
}

}  // namespace attune::service
