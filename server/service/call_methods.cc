#include "server/service/call_methods.h"

#include <iterator>
#include <string>

#include "attune/v1/access.pb.h"
#include "attune/v1/blob.pb.h"
#include "attune/v1/fleet.pb.h"
#include "attune/v1/service.pb.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/status.h"

namespace attune::service {
namespace {

using google::protobuf::MethodDescriptor;

const MethodDescriptor* Find(const std::string& name) {
  // Whoever links these files has their descriptors.
  for (const auto* file : {v1::GetBestRequest::descriptor()->file(), v1::GetCallerRequest::descriptor()->file(),
                           v1::Blob::descriptor()->file(), v1::Host::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      if (const MethodDescriptor* found = file->service(i)->FindMethodByName(name)) return found;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<metrics::CallMethod> CallMethods() {
  std::vector<metrics::CallMethod> methods;
  for (const access::Method& method : access::kMethods) {
    const std::string name(method.name);
    const MethodDescriptor* const found = Find(name);
    methods.push_back(
        {found == nullptr ? "" : found->service()->full_name(), name, found != nullptr && found->server_streaming()});
  }
  return methods;
}

void CountUnreadable(metrics::Calls& calls, const std::string& method) {
  const size_t index = access::IndexOfMethod(method);
  if (index == std::size(access::kMethods)) return;
  calls.Begun(index);
  calls.Ended(index, grpc::StatusCode::INVALID_ARGUMENT, absl::ZeroDuration());
}

}  // namespace attune::service
