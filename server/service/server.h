// The gRPC server around the service: addresses, whose connection is whose, health, reflection, shutdown.
#ifndef ATTUNE_SERVER_SERVICE_SERVER_H_
#define ATTUNE_SERVER_SERVICE_SERVER_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/access/principal.h"
#include "server/access/quotas.h"
#include "server/service/handshake_audit.h"
#include "server/service/listener.h"
#include "server/service/principal_server.h"
#include "server/service/server_options.h"

namespace attune::service {

class Server {
 public:
  // Users of this host that are told apart; connections of further ones are refused.
  static constexpr size_t kMostPrincipals = 256;

  // Listens on every address: "host:port" (port 0: any free one) or "unix:/path"; errors are Listener's. The services
  // live longer than the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const std::vector<std::string>& addresses, Services services,
                                                       ServerOptions options = {});

  // What it listens on, with real port numbers.
  const std::vector<std::string>& addresses() const { return listener_->addresses(); }

  // Whether health says of "attune.tuning" that it serves, to every principal; false at first.
  void SetCanTune(bool can_tune);

  // Health turns NOT_SERVING and no connection is taken at once; calls in flight have `grace` to end.
  void Shutdown(absl::Duration grace);

 private:
  Server(Services services, ServerOptions options);

  access::Principal Of(const Peer& peer) const;
  // On the listener's thread, and on that of Start before it.
  void Take(int fd, const Peer& peer);
  // Made where there is none yet; null when it does not start. Under the lock.
  PrincipalServer* ServerOf(const access::Principal& principal, Peer::Transport transport);

  const Services services_;
  const ServerOptions options_;
  const std::shared_ptr<grpc::ServerCredentials> tcp_;  // TLS, or none
  const std::optional<HandshakeAudit> handshakes_;
  access::Quotas quotas_;
  std::mutex mutex_;  // guards the next two
  bool can_tune_ = false;
  std::map<std::string, std::unique_ptr<PrincipalServer>> servers_;  // by principal
  std::unique_ptr<Listener> listener_;  // last: it ends before what it hands connections to
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_SERVER_H_
