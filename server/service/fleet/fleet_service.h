// The hosts that share the store: listed, drained, forgotten.
#ifndef ATTUNE_SERVER_SERVICE_FLEET_FLEET_SERVICE_H_
#define ATTUNE_SERVER_SERVICE_FLEET_FLEET_SERVICE_H_

#include "absl/status/status.h"
#include "attune/v1/fleet.grpc.pb.h"
#include "server/service/executor.h"
#include "server/store/store.h"

namespace attune::service {

class FleetServiceImpl final : public v1::FleetService::CallbackService {
 public:
  // `store` lives longer.
  explicit FleetServiceImpl(store::Store* store) : store_(*store), executor_(/*threads=*/1) {}

  grpc::ServerUnaryReactor* ListHosts(grpc::CallbackServerContext*, const v1::ListHostsRequest*,
                                      v1::ListHostsResponse*) override;
  grpc::ServerUnaryReactor* DrainHost(grpc::CallbackServerContext*, const v1::DrainHostRequest*, v1::Host*) override;
  grpc::ServerUnaryReactor* UndrainHost(grpc::CallbackServerContext*, const v1::UndrainHostRequest*,
                                        v1::Host*) override;
  grpc::ServerUnaryReactor* ForgetHost(grpc::CallbackServerContext*, const v1::ForgetHostRequest*, v1::Host*) override;

 private:
  absl::Status List(v1::ListHostsResponse& response);

  store::Store& store_;
  Executor executor_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_FLEET_FLEET_SERVICE_H_
