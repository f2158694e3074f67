#include "server/service/access_service.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/service/calls.h"

namespace attune::service {

grpc::ServerUnaryReactor* AccessServiceImpl::GetCaller(grpc::CallbackServerContext* context,
                                                       const v1::GetCallerRequest*, v1::Caller* response) {
  return Now(context, "GetCaller", [context, response] {
    const access::Principal& principal = PrincipalOf(*context);
    response->set_principal(principal.name);
    response->set_role(std::string(access::RoleName(principal.role)));
    for (const auto& [name, limit] : QuotasOf(*context).Named()) {
      if (limit == 0) continue;
      v1::Caller::Quota& quota = *response->add_quotas();
      quota.set_name(std::string(name));
      quota.set_limit(limit);
    }
  });
}

grpc::ServerUnaryReactor* AccessServiceImpl::CreateToken(grpc::CallbackServerContext* context,
                                                         const v1::CreateTokenRequest* request,
                                                         v1::CreateTokenResponse* response) {
  return Later(context, "CreateToken", *request, executor_, [this, context, request, response] {
    auto created = tokens_.Create(*request, PrincipalOf(*context).name, absl::Now());
    if (!created.ok()) return created.status();
    *response = *std::move(created);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AccessServiceImpl::ListTokens(grpc::CallbackServerContext* context,
                                                        const v1::ListTokensRequest* request,
                                                        v1::ListTokensResponse* response) {
  return Later(context, "ListTokens", *request, executor_, [this, response] {
    for (v1::Token& token : tokens_.List()) *response->add_tokens() = std::move(token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AccessServiceImpl::RevokeToken(grpc::CallbackServerContext* context,
                                                         const v1::RevokeTokenRequest* request, v1::Token* response) {
  return Later(context, "RevokeToken", *request, executor_, [this, request, response] {
    auto revoked = tokens_.Revoke(request->name());
    if (!revoked.ok()) return revoked.status();
    *response = *std::move(revoked);
    return absl::OkStatus();
  });
}

}  // namespace attune::service
