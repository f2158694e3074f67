// The gRPC server of one principal's connections.
//
// gRPC does not tell the handler of a call which connection it came over, only the peer's address, which a Unix socket
// has none of. So connections are sorted where they are accepted: each principal has a server of its own, all with the
// same service, and whatever is asked there is asked by that principal; or, over TLS, by the one that the connection's
// certificate names, which gRPC does tell.
#ifndef ATTUNE_SERVER_SERVICE_PRINCIPAL_SERVER_H_
#define ATTUNE_SERVER_SERVICE_PRINCIPAL_SERVER_H_

#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "server/service/call_context.h"

namespace attune::service {

using Services = std::vector<grpc::Service*>;

// Thread-safe.
class PrincipalServer {
 public:
  // The services live longer; they have no methods but those of the callback API, so that several servers may share
  // them.
  static absl::StatusOr<std::unique_ptr<PrincipalServer>> Start(
      Caller caller, const Services& services, const std::shared_ptr<grpc::ServerCredentials>& credentials);

  // Serves a connected socket, which is the server's from now on.
  void Take(int fd);

  // What the health service says of "attune.tuning"; of "" and of the API's services it says SERVING until Shutdown.
  void SetCanTune(bool can_tune);

  // Health turns NOT_SERVING and no call is taken; calls in flight have until `deadline` to end.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  explicit PrincipalServer(Caller caller) : caller_(std::move(caller)) {}

  const Caller caller_;  // of every context, so it goes last
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_PRINCIPAL_SERVER_H_
