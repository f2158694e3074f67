#include "server/service/fleet/fleet_service.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/jobs/forget_host.h"
#include "server/service/calls.h"

namespace attune::service {

absl::Status FleetServiceImpl::List(v1::ListHostsResponse& response) {
  absl::StatusOr<std::vector<v1::Host>> hosts = store_.hosts().List();
  if (!hosts.ok()) return hosts.status();
  const absl::StatusOr<std::vector<store::LeasedJob>> held = store_.queue().Held();
  if (!held.ok()) return held.status();
  std::map<std::string, v1::Host*> by_holder;
  for (v1::Host& host : *hosts) {
    *response.add_hosts() = std::move(host);
  }
  for (v1::Host& host : *response.mutable_hosts()) by_holder[store::HolderOf(host.name())] = &host;
  for (const store::LeasedJob& job : *held) {
    const auto host = by_holder.find(job.holder);
    if (host == by_holder.end()) continue;
    v1::HostOperation& operation = *host->second->add_operations();
    operation.set_name(job.name);
    // One that has ended meanwhile, or is damaged, has no title.
    if (const auto found = store_.queue().Get(job.name); found.ok()) operation.set_title(found->operation.title());
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FleetServiceImpl::ListHosts(grpc::CallbackServerContext* context,
                                                      const v1::ListHostsRequest* request,
                                                      v1::ListHostsResponse* response) {
  return Later(context, "ListHosts", *request, executor_, [this, response] { return List(*response); });
}

grpc::ServerUnaryReactor* FleetServiceImpl::DrainHost(grpc::CallbackServerContext* context,
                                                      const v1::DrainHostRequest* request, v1::Host* response) {
  return Later(context, "DrainHost", *request, executor_,
               [this, request, response] { return Fill(store_.hosts().SetDraining(request->name(), true), response); });
}

grpc::ServerUnaryReactor* FleetServiceImpl::UndrainHost(grpc::CallbackServerContext* context,
                                                        const v1::UndrainHostRequest* request, v1::Host* response) {
  return Later(context, "UndrainHost", *request, executor_, [this, request, response] {
    return Fill(store_.hosts().SetDraining(request->name(), false), response);
  });
}

grpc::ServerUnaryReactor* FleetServiceImpl::ForgetHost(grpc::CallbackServerContext* context,
                                                       const v1::ForgetHostRequest* request, v1::Host* response) {
  return Later(context, "ForgetHost", *request, executor_,
               [this, request, response] { return Fill(jobs::ForgetHost(store_, request->name()), response); });
}

}  // namespace attune::service
