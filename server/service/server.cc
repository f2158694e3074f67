#include "server/service/server.h"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "server/base/log.h"

namespace attune::service {
namespace {

constexpr char kAdvice[] = "bring a token, or connect over the server's Unix socket";

// gRPC's own: it reads the files, reads them again, and takes no client without a certificate where there is who signs
// them. TLS 1.2 is the least that it speaks.
std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const std::optional<TlsOptions>& tls) {
  if (!tls.has_value()) return grpc::InsecureServerCredentials();
  const access::TlsFiles& files = tls->files;
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files.key, files.certificate, files.client_ca, static_cast<unsigned>(tls->reload_seconds)));
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace

Server::Server(Services services, ServerOptions options)
    : services_(std::move(services)),
      options_(std::move(options)),
      tcp_(CredentialsOf(options_.tls)),
      handshakes_(options_.tls.has_value() ? std::optional<HandshakeAudit>(std::in_place, options_.audit)
                                           : std::nullopt),
      quotas_(options_.quotas) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const std::vector<std::string>& addresses, Services services,
                                                      ServerOptions options) {
  absl::StatusOr<std::unique_ptr<Listener>> listener =
      Listener::Open(addresses, options.insecure || options.tls.has_value());
  if (!listener.ok()) return listener.status();
  std::unique_ptr<Server> server(new Server(std::move(services), std::move(options)));
  // Whatever keeps a server from starting shows here, and not at the first connection.
  const Peer own{Peer::Transport::kUnix, geteuid()};
  {
    const std::lock_guard lock(server->mutex_);
    if (server->ServerOf(server->Of(own), own.transport) == nullptr) {
      return absl::InternalError("the gRPC server does not start");
    }
  }
  server->listener_ = *std::move(listener);
  server->listener_->Start(server->options_.limits,
                           [server = server.get()](int fd, const Peer& peer) { server->Take(fd, peer); });
  return server;
}

access::Principal Server::Of(const Peer& peer) const {
  switch (peer.transport) {
    case Peer::Transport::kUnix:
      return options_.users.Of(peer.uid);
    case Peer::Transport::kLoopback:
      return {"loopback", options_.anonymous, kAdvice};
    case Peer::Transport::kNetwork:
      return {"network", options_.anonymous, kAdvice};
  }
  return {"nobody", access::Role::kNone};
}

PrincipalServer* Server::ServerOf(const access::Principal& principal, Peer::Transport transport) {
  std::unique_ptr<PrincipalServer>& server = servers_[principal.name];
  if (server != nullptr) return server.get();
  const bool tcp = transport != Peer::Transport::kUnix;
  const bool named = tcp && options_.tls.has_value() && !options_.tls->files.client_ca.empty();
  auto started =
      PrincipalServer::Start({.principal = principal,
                              .audit = options_.audit,
                              .tokens = options_.tokens,
                              .certificates = named ? &options_.tls->clients : nullptr,
                              .overheard = transport == Peer::Transport::kNetwork && !options_.tls.has_value(),
                              .quotas = &quotas_,
                              .local = transport != Peer::Transport::kNetwork,
                              .calls = options_.calls},
                             services_, tcp ? tcp_ : grpc::InsecureServerCredentials());
  if (!started.ok()) {
    LogError("connections are refused", {{"principal", principal.name}, {"reason", started.status().message()}});
    return nullptr;
  }
  server = *std::move(started);
  server->SetCanTune(can_tune_);
  return server.get();
}

void Server::Take(int fd, const Peer& peer) {
  const access::Principal principal = Of(peer);
  const std::lock_guard lock(mutex_);
  PrincipalServer* server = nullptr;
  if (servers_.contains(principal.name) || servers_.size() < kMostPrincipals) {
    server = ServerOf(principal, peer.transport);
  } else {
    LogWarning("connection refused, too many users have connected", {{"principal", principal.name}});
  }
  if (server == nullptr) {
    close(fd);
  } else {
    server->Take(fd);
  }
}

void Server::SetCanTune(bool can_tune) {
  const std::lock_guard lock(mutex_);
  can_tune_ = can_tune;
  for (const auto& [principal, server] : servers_) {
    if (server != nullptr) server->SetCanTune(can_tune);
  }
}

void Server::Shutdown(absl::Duration grace) {
  listener_->Stop();
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace);
  std::vector<std::thread> ending;  // all at once: none takes a call while another one ends
  for (const auto& [principal, server] : servers_) {
    if (server != nullptr) ending.emplace_back([deadline, ends = server.get()] { ends->Shutdown(deadline); });
  }
  for (std::thread& thread : ending) thread.join();
}

}  // namespace attune::service
