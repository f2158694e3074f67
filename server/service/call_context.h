// The context of a call, which knows whom its connection is of.
#ifndef ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_
#define ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "server/access/principal.h"

namespace attune::service {

class CallContext final : public grpc::CallbackServerContext {
 public:
  explicit CallContext(const access::Principal& principal) : principal_(principal) {}

  const access::Principal& principal() const { return principal_; }

 private:
  const access::Principal& principal_;
};

// Makes the contexts of a server's calls. The principal lives longer.
class CallContexts final : public grpc::ContextAllocator {
 public:
  explicit CallContexts(const access::Principal& principal) : principal_(principal) {}

  grpc::CallbackServerContext* NewCallbackServerContext() override { return new CallContext(principal_); }
  // Of calls of methods that there are none of: gRPC releases theirs as it does the others, even those it made itself.
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext() override {
    return new grpc::GenericCallbackServerContext;
  }
  void Release(grpc::CallbackServerContext* context) override { delete context; }
  void Release(grpc::GenericCallbackServerContext* context) override { delete context; }

 private:
  const access::Principal& principal_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_
