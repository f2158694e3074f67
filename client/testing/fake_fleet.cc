#include "client/testing/fake_fleet.h"

#include <string>

#include "client/testing/fake_attune.h"

namespace attune::testing {
namespace {

v1::Host A() {
  v1::Host host;
  host.set_name("hosts/a");
  host.set_state(v1::Host::STATE_LIVE);
  host.set_version("1.0");
  host.mutable_start_time()->set_seconds(1'790'000'000);
  host.mutable_heartbeat_time()->set_seconds(1'790'000'100);
  host.mutable_heartbeat_age()->set_seconds(2);
  for (const char* id : {"cuda:0", "cuda:1"}) {
    v1::Device& device = *host.add_devices();
    device.set_id(id);
    device.set_class_alias("l4");
    device.set_model("NVIDIA L4");
    device.set_fingerprint("8f3a");
  }
  host.mutable_devices(1)->set_uuid("GPU-2");
  v1::HostOperation& operation = *host.add_operations();
  operation.set_name("operations/7");
  operation.set_title("tune b2.h8.q512.d64.f16 on l4");
  return host;
}

v1::Host B() {
  v1::Host host;
  host.set_name("hosts/b");
  host.set_state(v1::Host::STATE_LOST);
  host.mutable_heartbeat_age()->set_seconds(71);
  return host;
}

grpc::Status Give(const std::string& name, v1::Host* host) {
  for (const v1::Host& one : {A(), B()}) {
    if (one.name() == name) *host = one;
  }
  if (!host->name().empty()) return grpc::Status::OK;
  return RichError(grpc::StatusCode::NOT_FOUND, name + " is not known", "NOT_FOUND");
}

}  // namespace

grpc::Status FakeFleet::ListHosts(grpc::ServerContext*, const v1::ListHostsRequest*, v1::ListHostsResponse* response) {
  *response->add_hosts() = A();
  *response->add_hosts() = B();
  return grpc::Status::OK;
}

grpc::Status FakeFleet::DrainHost(grpc::ServerContext*, const v1::DrainHostRequest* request, v1::Host* host) {
  const grpc::Status given = Give(request->name(), host);
  host->set_draining(true);
  return given;
}

grpc::Status FakeFleet::UndrainHost(grpc::ServerContext*, const v1::UndrainHostRequest* request, v1::Host* host) {
  return Give(request->name(), host);
}

grpc::Status FakeFleet::ForgetHost(grpc::ServerContext*, const v1::ForgetHostRequest* request, v1::Host* host) {
  if (request->name() == "hosts/a") {
    return RichError(grpc::StatusCode::FAILED_PRECONDITION, "hosts/a is alive", "FAILED_PRECONDITION");
  }
  return Give(request->name(), host);
}

}  // namespace attune::testing
