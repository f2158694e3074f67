// The context of a call, which knows whom its connection is of.
#ifndef ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_
#define ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>

#include "server/access/audit_log.h"
#include "server/access/principal.h"

namespace attune::service {

// What all calls of a server have in common.
struct Caller {
  access::Principal principal;
  access::AuditLog* audit = nullptr;  // null: none is kept
};

class CallContext final : public grpc::CallbackServerContext {
 public:
  explicit CallContext(const Caller& caller) : caller_(caller) {}

  const Caller& caller() const { return caller_; }

 private:
  const Caller& caller_;
};

// Makes the contexts of a server's calls. The caller lives longer.
class CallContexts final : public grpc::ContextAllocator {
 public:
  explicit CallContexts(const Caller& caller) : caller_(caller) {}

  grpc::CallbackServerContext* NewCallbackServerContext() override { return new CallContext(caller_); }
  // Of calls of methods that there are none of: gRPC releases theirs as it does the others, even those it made itself.
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext() override {
    return new grpc::GenericCallbackServerContext;
  }
  void Release(grpc::CallbackServerContext* context) override { delete context; }
  void Release(grpc::GenericCallbackServerContext* context) override { delete context; }

 private:
  const Caller& caller_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_
