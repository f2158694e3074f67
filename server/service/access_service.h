// The administration of access: tokens made, listed and revoked.
#ifndef ATTUNE_SERVER_SERVICE_ACCESS_SERVICE_H_
#define ATTUNE_SERVER_SERVICE_ACCESS_SERVICE_H_

#include <functional>

#include "absl/status/status.h"
#include "attune/v1/access.grpc.pb.h"
#include "server/access/method.h"
#include "server/access/tokens.h"
#include "server/service/executor.h"

namespace attune::service {

class AccessServiceImpl final : public v1::AccessService::CallbackService {
 public:
  // `tokens` live longer.
  explicit AccessServiceImpl(access::Tokens* tokens) : tokens_(*tokens), executor_(/*threads=*/1) {}

  grpc::ServerUnaryReactor* GetCaller(grpc::CallbackServerContext*, const v1::GetCallerRequest*, v1::Caller*) override;
  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext*, const v1::CreateTokenRequest*,
                                        v1::CreateTokenResponse*) override;
  grpc::ServerUnaryReactor* ListTokens(grpc::CallbackServerContext*, const v1::ListTokensRequest*,
                                       v1::ListTokensResponse*) override;
  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext*, const v1::RevokeTokenRequest*,
                                        v1::Token*) override;

 private:
  access::Tokens& tokens_;
  Executor executor_;
};

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_ACCESS_SERVICE_H_
