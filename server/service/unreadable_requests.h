// gRPC answers a request that it cannot parse with UNIMPLEMENTED and no word, as if the server had no such method. Here
// it is INVALID_ARGUMENT, and says what it should have been.
#ifndef ATTUNE_SERVER_SERVICE_UNREADABLE_REQUESTS_H_
#define ATTUNE_SERVER_SERVICE_UNREADABLE_REQUESTS_H_

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/server_interceptor.h"

namespace attune::service {

// Told of each such request's call and method, and of what was wrong with it; may be null. On any thread.
using UnreadableSeen =
    std::function<void(grpc::ServerContextBase* context, const std::string& method, const absl::Status& why)>;

// For ServerBuilder. Of the methods of `service` (full name) all but those that parse their requests themselves, `raw`;
// other calls are left alone.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeUnreadableRequests(
    const std::string& service, const std::set<std::string>& raw, UnreadableSeen seen = nullptr);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_UNREADABLE_REQUESTS_H_
