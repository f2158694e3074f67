#include "client/testing/fake_access.h"

#include "client/testing/fake_attune.h"

namespace attune::testing {
namespace {

v1::Token Nightly() {
  v1::Token token;
  token.set_name("tokens/nightly");
  token.set_role("tuner");
  token.set_created_by("uid:1000");
  token.mutable_create_time()->set_seconds(1790000000);
  token.mutable_expire_time()->set_seconds(1797776000);
  return token;
}

}  // namespace

std::string AuthorizationOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  return found == context.client_metadata().end() ? "" : std::string(found->second.data(), found->second.size());
}

std::string FakeAccess::authorization() const {
  const std::lock_guard lock(mutex_);
  return authorization_;
}
v1::CreateTokenRequest FakeAccess::last_create() const {
  const std::lock_guard lock(mutex_);
  return last_create_;
}

grpc::Status FakeAccess::GetCaller(grpc::ServerContext*, const v1::GetCallerRequest*, v1::Caller* caller) {
  caller->set_principal("token:nightly");
  caller->set_role("tuner");
  v1::Caller::Quota& quota = *caller->add_quotas();
  quota.set_name("operations");
  quota.set_limit(100);
  return grpc::Status::OK;
}
grpc::Status FakeAccess::CreateToken(grpc::ServerContext*, const v1::CreateTokenRequest* request,
                                     v1::CreateTokenResponse* response) {
  const std::lock_guard lock(mutex_);
  last_create_ = *request;
  *response->mutable_token() = Nightly();
  response->mutable_token()->set_name("tokens/" + request->id());
  response->mutable_token()->set_role(request->role());
  response->set_secret("attune_secret");
  return grpc::Status::OK;
}
grpc::Status FakeAccess::ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest*,
                                    v1::ListTokensResponse* response) {
  const std::lock_guard lock(mutex_);
  authorization_ = AuthorizationOf(*context);
  *response->add_tokens() = Nightly();
  return grpc::Status::OK;
}
grpc::Status FakeAccess::RevokeToken(grpc::ServerContext*, const v1::RevokeTokenRequest* request, v1::Token* token) {
  *token = Nightly();
  if (request->name() == token->name()) return grpc::Status::OK;
  return RichError(grpc::StatusCode::NOT_FOUND, "there is no token '" + request->name() + "'", "NOT_FOUND");
}

}  // namespace attune::testing
