// The gRPC server around the service: addresses, health, reflection, message limits, shutdown.
#ifndef ATTUNE_SERVER_SERVICE_SERVER_H_
#define ATTUNE_SERVER_SERVICE_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"

namespace attune::service {

class Server {
 public:
  // Listens on every address: "host:port" (port 0: any free one) or "unix:/path". A socket file left behind by a
  // process that is gone is replaced. `service` lives longer than the server. Unavailable names the address that could
  // not be listened on, FailedPrecondition the socket that another process serves.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const std::vector<std::string>& addresses,
                                                       grpc::Service* service);

  // What it listens on, with real port numbers.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Health turns NOT_SERVING at once; calls in flight have `grace` to end.
  void Shutdown(absl::Duration grace);

 private:
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_SERVER_H_
