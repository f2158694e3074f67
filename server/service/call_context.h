// The context of a call, which knows whom its connection is of.
#ifndef ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_
#define ATTUNE_SERVER_SERVICE_CALL_CONTEXT_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/access/audit_log.h"
#include "server/access/certificates.h"
#include "server/access/principal.h"
#include "server/access/quotas.h"
#include "server/access/tokens.h"
#include "server/metrics/calls.h"

namespace attune::service {

// What all calls of a server have in common.
struct Caller {
  access::Principal principal;
  access::AuditLog* audit = nullptr;       // null: none is kept
  const access::Tokens* tokens = nullptr;  // null: none is known
  // Whom clients are by their certificates; null: they bring none.
  const access::Certificates* certificates = nullptr;
  bool overheard = false;            // other hosts may read what is sent
  access::Quotas* quotas = nullptr;  // null: there are none
  bool local = false;                // whoever connects is on this host
  metrics::Calls* calls = nullptr;   // counts them; null: nobody does
};

class CallContext final : public grpc::CallbackServerContext {
 public:
  explicit CallContext(const Caller& caller) : caller_(caller), principal_(&caller.principal) {}

  const Caller& caller() const { return caller_; }
  // Of the connection, until the call turns out to be a certificate's or to bring a token.
  const access::Principal& principal() const { return *principal_; }
  // Those that hold for it; null: none. Admins have none, nor have those who are on this host and show it by their
  // connection alone.
  access::Quotas* quotas() const {
    const bool connected = principal_ == &caller_.principal;
    return principal_->role == access::Role::kAdmin || (connected && caller_.local) ? nullptr : caller_.quotas;
  }
  void set_principal(const access::Principal* principal) { principal_ = principal; }
  // When it was admitted or refused.
  absl::Duration begun() const { return begun_; }
  void set_begun(absl::Duration begun) { begun_ = begun; }
  // One of this call alone.
  void set_principal(access::Principal principal) { principal_ = &own_.emplace(std::move(principal)); }

 private:
  const Caller& caller_;
  const access::Principal* principal_;
  std::optional<access::Principal> own_;
  absl::Duration begun_;  // by SteadyNow
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
