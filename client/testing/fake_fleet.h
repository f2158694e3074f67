// The fleet service with canned answers: "a" works on its l4, the gateway "b" is lost.
#ifndef ATTUNE_CLIENT_TESTING_FAKE_FLEET_H_
#define ATTUNE_CLIENT_TESTING_FAKE_FLEET_H_

#include <grpcpp/grpcpp.h>

#include "attune/v1/fleet.grpc.pb.h"

namespace attune::testing {

class FakeFleet : public v1::FleetService::Service {
 public:
  grpc::Status ListHosts(grpc::ServerContext*, const v1::ListHostsRequest*, v1::ListHostsResponse*) override;
  grpc::Status DrainHost(grpc::ServerContext*, const v1::DrainHostRequest*, v1::Host*) override;
  grpc::Status UndrainHost(grpc::ServerContext*, const v1::UndrainHostRequest*, v1::Host*) override;
  // FAILED_PRECONDITION of "a", which lives.
  grpc::Status ForgetHost(grpc::ServerContext*, const v1::ForgetHostRequest*, v1::Host*) override;
};

}  // namespace attune::testing

#endif  // ATTUNE_CLIENT_TESTING_FAKE_FLEET_H_
