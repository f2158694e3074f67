// The gRPC server around the service: addresses, health, reflection, message limits, shutdown.
#ifndef ATTUNE_SERVER_SERVICE_SERVER_H_
#define ATTUNE_SERVER_SERVICE_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/service/listener.h"

namespace attune::service {

class Server {
 public:
  // Listens on every address: "host:port" (port 0: any free one) or "unix:/path"; errors are Listener's. `service`
  // lives longer than the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const std::vector<std::string>& addresses,
                                                       grpc::Service* service,
                                                       ConnectionLimits limits = LimitsOfThisProcess());

  // What it listens on, with real port numbers.
  const std::vector<std::string>& addresses() const { return listener_->addresses(); }

  // Health turns NOT_SERVING and no connection is taken at once; calls in flight have `grace` to end.
  void Shutdown(absl::Duration grace);

 private:
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Listener> listener_;  // last: it ends before what it hands connections to
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_SERVER_H_
